"""Whatever a client claims: no exception, no warning, a finite update, and nothing changes for the rest."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from tests.strategies import RULE_NAMES, make_round

import fedra

pytestmark = pytest.mark.filterwarnings("error")


class UnreadableError(Exception):
    def __str__(self):
        raise RuntimeError("not even this")


class RaisingInt(int):
    def __float__(self):
        raise UnreadableError


class RaisingText(str):
    __slots__ = ()

    def __getitem__(self, key):
        raise UnreadableError

    def __repr__(self):
        raise UnreadableError

    def __len__(self):
        raise UnreadableError


class RaisingClass:
    @property
    def __class__(self):
        raise UnreadableError


class RaisingEverything:
    def __getattr__(self, name):
        raise UnreadableError

    def __float__(self):
        raise UnreadableError

    def __repr__(self):
        raise UnreadableError

    def __len__(self):
        raise UnreadableError

    def __iter__(self):
        raise UnreadableError

    def __eq__(self, other):
        raise UnreadableError

    __hash__ = None


NOT_QUANTITIES = {
    "zero": 0,
    "minus zero": -0.0,
    "negative": -1,
    "below one": 0.999,
    "nan": math.nan,
    "inf": math.inf,
    "minus inf": -math.inf,
    "just beyond 2**53": np.nextafter(2.0**53, np.inf),
    "2**70": 2**70,
    "1e308": 1e308,
    "largest float": np.finfo(np.float64).max,
    "largest uint64": np.uint64(2**64 - 1),
    "10**400": 10**400,
    "-10**400": -(10**400),
    "longdouble": np.longdouble("1e400"),
    "fraction too large": Fraction(10**400),
    "True": True,
    "np.True_": np.True_,
    "text": "5",
    "long text": "5" * 10_000,
    "bytes": b"5",
    "None": None,
    "0-d array": np.array(5.0),
    "array": np.array([5.0]),
    "list": [5],
    "dict": {"q": 5},
    "complex": 5j,
    "np.complex": np.complex128(5),
    "decimal": Decimal(5),
    "type": int,
    "raising int": RaisingInt(5),
    "raising text": RaisingText("5"),
    "raising class": RaisingClass(),
    "raising everything": RaisingEverything(),
}

QUANTITIES = {
    "one": 1,
    "fractional": 1.5,
    "1e12": 1e12,
    "2**53": 2**53,
    "just below 2**53": np.nextafter(2.0**53, 0),
    "fraction": Fraction(7, 2),
    "int8": np.int8(5),
    "uint64": np.uint64(2**53),
    "float16": np.float16(5),
}


@pytest.mark.parametrize("name", RULE_NAMES)
@pytest.mark.parametrize("claim", NOT_QUANTITIES)
def test_a_claim_that_is_no_quantity_is_rejected_with_a_reason(name, claim):
    cohort = make_round(1, 9, 12, np.float32)
    quantities = cohort.quantities.tolist()
    quantities[4] = NOT_QUANTITIES[claim]
    rule = fedra.make_rule(name)
    verdict = rule(cohort.updates, quantities)
    others = np.arange(9) != 4
    alone = rule(cohort.updates[others], cohort.quantities[others], np.flatnonzero(others))
    assert not verdict.kept[4]
    assert verdict.reasons[4].startswith("quantity")
    assert len(verdict.reasons[4]) < 200
    assert math.isnan(verdict.quantities[4])
    assert verdict.update.tobytes() == alone.update.tobytes()
    np.testing.assert_array_equal(verdict.kept[others], alone.kept)
    for field in ("weights", "scores", "implied_quantities"):
        found, expected = getattr(verdict, field), getattr(alone, field)
        np.testing.assert_array_equal(None if found is None else found[others], expected)
    assert (verdict.num_malicious, verdict.cut) == (alone.num_malicious, alone.cut)
    assert verdict.warnings == alone.warnings
    assert "quantity" in str(verdict)


@pytest.mark.parametrize("name", RULE_NAMES)
@pytest.mark.parametrize("claim", QUANTITIES.values(), ids=QUANTITIES)
@pytest.mark.parametrize("liars", [1, 2, 4])
def test_a_claim_from_1_to_2_to_the_53_is_taken(name, claim, liars):
    cohort = make_round(2, 11, 12, np.float32)
    quantities = cohort.quantities.tolist()
    quantities[:liars] = [claim] * liars
    verdict = fedra.make_rule(name)(cohort.updates, quantities)
    assert np.isfinite(verdict.update).all()
    assert verdict.quantities[0] == float(claim)
    assert not any(reason.startswith("quantity") for reason in verdict.reasons)
    assert len(str(verdict)) < 10_000
    if verdict.scores is not None:
        assert np.isfinite(verdict.scores).all()
    if verdict.weights is not None:
        assert verdict.weights.sum() == pytest.approx(1)


@pytest.mark.parametrize("gamma", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("claim", [1e12, 2.0**53])
def test_a_huge_claim_with_a_far_update_is_dropped_by_fedra(gamma, claim):
    rng = np.random.default_rng(5)
    updates = rng.standard_normal((20, 50))
    updates[7] += 5
    quantities = rng.integers(1, 100, 20).astype(float)
    quantities[7] = claim
    for setting in ("dynamic", "fixed"):
        verdict = fedra.FedRA(gamma=gamma, setting=setting)(updates, quantities)
        assert verdict.by_suspicion()[0] == 7
        assert not verdict.kept[7]


def test_arrays_of_bools_or_texts_reject_everyone():
    updates = np.eye(5)
    for quantities in (np.ones(5, dtype=bool), np.array(["5"] * 5), np.array([b"5"] * 5), np.full(5, 5j)):
        verdict = fedra.FedRA()(updates, quantities)
        assert verdict.update is None
        assert all(reason.startswith("quantity") for reason in verdict.reasons)
