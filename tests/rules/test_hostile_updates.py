"""Whatever a client sends as its update: no exception, no warning, and a finite result."""

import numpy as np
import pytest
from tests import reference
from tests.strategies import RULE_NAMES, make_round

import fedra

pytestmark = pytest.mark.filterwarnings("error")
every_rule = pytest.mark.parametrize("name", RULE_NAMES)
LENGTH = 12


class UnreadableError(Exception):
    def __str__(self):
        raise RuntimeError("not even this")


class RaisingArray:
    def __array__(self, dtype=None, copy=None):
        raise UnreadableError


class RaisingDLPack:
    def __dlpack__(self, **options):
        raise UnreadableError

    def __dlpack_device__(self):
        raise UnreadableError


class RaisingAttributes:
    def __getattribute__(self, name):
        raise UnreadableError


class RaisingSequence:
    def __len__(self):
        raise UnreadableError

    def __iter__(self):
        raise UnreadableError

    def __getitem__(self, key):
        raise UnreadableError

    def __repr__(self):
        raise UnreadableError


class WrongArray:
    def __array__(self, dtype=None, copy=None):
        return "not an array"


class RaisingFloat:
    def __float__(self):
        raise UnreadableError


def with_value(value, place=5):
    update = np.ones(LENGTH, dtype=np.float32)
    update[place] = value
    return update


NOT_UPDATES = {
    "nan first": with_value(np.nan, 0),
    "nan last": with_value(np.nan, -1),
    "negative nan": with_value(-np.nan),
    "inf": with_value(np.inf),
    "minus inf": with_value(-np.inf),
    "all nan": np.full(LENGTH, np.nan, dtype=np.float32),
    "float64 too large for float32": np.full(LENGTH, 1e300),
    "longer": np.ones(LENGTH + 1, dtype=np.float32),
    "shorter": np.ones(LENGTH - 1, dtype=np.float32),
    "empty": np.empty(0, dtype=np.float32),
    "scalar": np.float32(1),
    "matrix": np.ones((LENGTH, 1), dtype=np.float32),
    "object": np.ones(LENGTH, dtype=object),
    "objects that raise": np.array([RaisingFloat()] * LENGTH, dtype=object),
    "text": np.array(["1"] * LENGTH),
    "new text": np.array(["1"] * LENGTH, dtype=np.dtypes.StringDType()),
    "bytes": np.array([b"1"] * LENGTH),
    "complex": np.ones(LENGTH, dtype=np.complex64),
    "integers": np.ones(LENGTH, dtype=np.int64),
    "unsigned": np.ones(LENGTH, dtype=np.uint8),
    "bool": np.ones(LENGTH, dtype=bool),
    "sixteen bits": np.ones(LENGTH, dtype=np.int16),
    "sixteen bits, unsigned": np.ones(LENGTH, dtype=np.uint16),
    "sixteen bits of anything": np.zeros(LENGTH, dtype="V2"),
    "long double": np.ones(LENGTH, dtype=np.longdouble),
    "structured": np.zeros(LENGTH, dtype=[("value", "f4")]),
    "dates": np.zeros(LENGTH, dtype="M8[s]"),
    "void": np.zeros(LENGTH, dtype="V4"),
    "None": None,
    "a number": 1.0,
    "a word": "update",
    "raw bytes": b"\x00" * 4 * LENGTH,
    "integers in a list": [1] * LENGTH,
    "ragged list": [1.0, [2.0, 3.0]],
    "mixed list": [1.0, "2"],
    "dict": {"update": 1},
    "generator": (float(i) for i in range(LENGTH)),
    "type": float,
    "raising array": RaisingArray(),
    "raising dlpack": RaisingDLPack(),
    "raising attributes": RaisingAttributes(),
    "raising sequence": RaisingSequence(),
    "wrong array": WrongArray(),
    "list that raises": [RaisingFloat()] * LENGTH,
}


@every_rule
@pytest.mark.parametrize("update", NOT_UPDATES)
@pytest.mark.parametrize("place", [0, 4])
def test_what_is_no_update_is_rejected_with_a_reason(name, update, place):
    cohort = make_round(3, 9, LENGTH, np.float32)
    updates = list(cohort.updates)
    updates[place] = NOT_UPDATES[update]
    rule = fedra.make_rule(name)
    verdict = rule(updates, cohort.quantities)
    others = np.arange(9) != place
    assert not verdict.kept[place]
    assert verdict.reasons[place].startswith("update")
    assert len(verdict.reasons[place]) < 200
    assert verdict.update.dtype == np.float32
    np.testing.assert_array_equal(verdict.update, rule(cohort.updates[others], cohort.quantities[others]).update)
    assert "update" in str(verdict)


@every_rule
@pytest.mark.parametrize("value", [1e38, 3.4e38, -3.4e38, 1e-45, 1e-39, -0.0])
@pytest.mark.parametrize("liars", [1, 2])
def test_values_at_the_ends_of_float32_stay_finite(name, value, liars):
    cohort = make_round(4, 20, 1500, np.float32, scale=1e-3)
    cohort.updates[:liars] = value
    cohort.updates[1] *= -1
    verdict = fedra.make_rule(name)(cohort.updates, cohort.quantities)
    assert np.isfinite(verdict.update).all()
    if verdict.scores is not None:
        assert np.isfinite(verdict.scores).all()


@pytest.mark.parametrize("value", [1e38, 3.4e38])
@pytest.mark.parametrize("dimension", [5, 1500])
def test_honest_clients_are_ranked_properly_beside_huge_updates(value, dimension):
    cohort = make_round(5, 20, dimension, np.float32, scale=1e-3)
    cohort.updates[3], cohort.updates[11] = value, -value
    scores = fedra.FedRA(num_malicious=2, setting="fixed")(cohort.updates, cohort.quantities).scores
    expected = reference.quantity_robust_scores(cohort.updates, cohort.quantities, 2, 0.1)
    np.testing.assert_allclose(scores, expected, rtol=2e-7)
    krum = fedra.MultiKrum(num_malicious=2)(cohort.updates, cohort.quantities)
    np.testing.assert_allclose(krum.scores, reference.krum_scores(cohort.updates, 2), rtol=1e-6)
    for rule in (fedra.MultiKrum(num_malicious=2), fedra.FedRA(num_malicious=2, setting="fixed"), fedra.FedRA()):
        verdict = rule(cohort.updates, cohort.quantities)
        assert not verdict.kept[[3, 11]].any()
        assert np.abs(verdict.update).max() < 1
    assert np.abs(fedra.Bulyan(num_malicious=2)(cohort.updates, cohort.quantities).update).max() < 1


@pytest.mark.parametrize("scale", [1e-45, 1e-41, 1e-30])
def test_rounds_of_subnormal_updates_are_told_apart(scale):
    """Squares of these fall below float32's range, and would all count as 0 if they were taken in it."""
    cohort = make_round(6, 12, 40, np.float64)
    updates = (np.round(cohort.updates * 100) * scale).astype(np.float32)
    verdict = fedra.Krum(num_malicious=1)(updates, cohort.quantities)
    np.testing.assert_allclose(verdict.scores, reference.krum_scores(updates, 1), rtol=1e-6)
    assert verdict.scores.min() > 0
    scores = fedra.FedRA(setting="fixed")(updates, cohort.quantities).scores
    np.testing.assert_allclose(scores, reference.quantity_robust_scores(updates, cohort.quantities, 2, 0.1), rtol=1e-6)
    implied, _, _ = reference.evidence(updates, cohort.quantities)
    np.testing.assert_allclose(fedra.FedRA()(updates, cohort.quantities).implied_quantities, implied, rtol=1e-4)


@every_rule
@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-160, 1e130])
def test_float64_rounds_at_the_ends_of_the_range(name, scale):
    cohort = make_round(7, 12, 30)
    verdict = fedra.make_rule(name)(np.round(cohort.updates * 100) * scale, cohort.quantities)
    assert np.isfinite(verdict.update).all()


def test_float64_values_whose_distances_would_overflow_are_rejected():
    cohort = make_round(8, 9, 6)
    cohort.updates[2, 3] = 1e200
    verdict = fedra.FedRA()(cohort.updates, cohort.quantities)
    assert "1e+200" in verdict.reasons[2]
    assert np.isfinite(verdict.update).all()


def test_minus_zero_is_zero():
    cohort = make_round(9, 9, 6)
    cohort.updates[:, 0] = 0.0
    plus = fedra.FedRA()(cohort.updates, cohort.quantities)
    cohort.updates[::2, 0] = -0.0
    minus = fedra.FedRA()(cohort.updates, cohort.quantities)
    np.testing.assert_array_equal(plus.scores, minus.scores)
    np.testing.assert_array_equal(plus.update, minus.update)


@every_rule
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("clients", [7, 20])
def test_all_clients_identical(name, dtype, clients):
    row = np.array([0.1, -3.0, 0.0, 7e-5, 1e30], dtype=dtype)
    verdict = fedra.make_rule(name)(np.tile(row, (clients, 1)), range(1, clients + 1))
    np.testing.assert_allclose(verdict.update, row, rtol=1e-7 if dtype == np.float32 else 1e-14)


@every_rule
def test_two_groups_of_identical_clients(name):
    updates = np.zeros((10, 4))
    updates[[1, 4, 8]] = 5.0
    verdict = fedra.make_rule(name, **({"malicious_ratio": 0.2} if name == "fedra" else {}))(updates, [3] * 10)
    assert np.isfinite(verdict.update).all()
    assert ((verdict.update >= 0) & (verdict.update <= 5)).all()


@pytest.mark.parametrize("variance", ["separate", "pooled", "pooled-root"])
def test_fedra_drops_the_smaller_of_two_identical_groups(variance):
    updates = np.zeros((10, 4))
    updates[[1, 4, 8]] = 5.0
    verdict = fedra.FedRA(malicious_ratio=0.3, variance=variance)(updates, [3] * 10)
    assert np.flatnonzero(~verdict.kept).tolist() == [1, 4, 8]
    assert verdict.num_malicious == 3
