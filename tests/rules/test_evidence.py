"""What an update proves: the default of FedRA against its formulas."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests import reference
from tests.comparing import assert_near
from tests.reference.evidence import cap
from tests.strategies import SEEDS, rounds

import fedra
from fedra.rules.evidence import LEFT_OUT, capped_at, most_liars, weigh_evidence

RATIOS = st.sampled_from(["0", "0.05", "0.1", "0.25", "0.4"])


def honest_round(seed, quantities, dimension=1000, signal=0.3):
    """Means over q samples of unit variance in each coordinate, around a common direction."""
    rng = np.random.default_rng(seed)
    truth = signal * rng.standard_normal(dimension)
    return truth, truth + rng.standard_normal((len(quantities), dimension)) / np.sqrt(quantities)[:, np.newaxis]


@given(rounds(least_clients=5, most_clients=14, dtypes=st.just(np.float64)), RATIOS)
def test_the_verdict_is_the_formula(cohort, ratio):
    rule = fedra.FedRA(malicious_ratio=float(ratio), clamp=True)
    verdict = rule(cohort.updates, cohort.quantities)
    implied, excess, counted = reference.evidence(cohort.updates, cohort.quantities, ratio)
    assume((np.abs(excess / LEFT_OUT - 1) > 1e-6).all())
    assume(counted.sum() > 0)
    # An implied quantity is a difference of two numbers; its inverse is known to within their rounding.
    np.testing.assert_allclose(1 / verdict.implied_quantities, 1 / implied, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(verdict.scores, excess, rtol=1e-6, atol=1e-9 * cohort.quantities.max())
    np.testing.assert_allclose(verdict.weights, counted / counted.sum(), rtol=1e-5, atol=1e-9)
    assert verdict.kept.tolist() == (excess <= LEFT_OUT).tolist() or ratio == "0"
    assert_near(verdict.update, (counted / counted.sum()) @ cohort.updates, cohort.updates, factor=1e4)


@given(
    st.lists(st.floats(0, 1e12), min_size=3, max_size=12),
    st.integers(0, 5),
    st.floats(0.05, 0.95),
)
def test_the_cap_is_the_largest_that_holds(values, count, share):
    assume(max(values) > 0)
    assert capped_at(np.array(values), count, share) == pytest.approx(cap(values, count, share), rel=1e-6)


@pytest.mark.parametrize(
    ("clients", "ratio", "expected"),
    [(50, 0.1, 10), (10, 0.1, 3), (100, 0.1, 16), (5, 0.1, 1), (5, 0.0, 0), (6, 0.01, 1), (20, 0.45, 8)],
)
def test_a_round_may_hold_more_liars_than_the_ratio(clients, ratio, expected):
    assert most_liars(clients, ratio) == expected


def test_honest_clients_behave_as_they_claim():
    quantities = np.array([4, 9, 16, 25, 36, 50, 64, 80, 100, 5, 10, 20], dtype=float)
    _, updates = honest_round(0, quantities)
    verdict = fedra.FedRA()(updates, quantities)
    assert verdict.kept.all()
    # The scale comes from capped claims, so what is proved is rather too low than too high.
    assert (verdict.implied_quantities > 0.5 * quantities).all()
    assert (verdict.implied_quantities < 1.2 * quantities).all()
    np.testing.assert_allclose(verdict.weights, quantities / quantities.sum())


def test_the_reason_says_what_a_liar_behaves_like():
    true = np.array([4, 9, 16, 25, 36, 50, 64, 80, 100, 5, 10, 20], dtype=float)
    _, updates = honest_round(1, true)
    claimed = true.copy()
    claimed[0] = 9000
    verdict = fedra.FedRA()(updates, claimed)
    assert not verdict.kept[0]
    assert verdict.implied_quantities[0] == pytest.approx(4, rel=0.4)
    assert "claims 9,000 samples and behaves like" in verdict.reasons[0]


@given(SEEDS, st.floats(1, 1e15))
def test_claiming_more_never_gains_much(seed, factor):
    """A client's weight beside the others' is at most that of four times what its update proves."""
    rng = np.random.default_rng(seed)
    quantities = np.floor(np.exp(rng.uniform(0, 5, 20)))
    _, updates = honest_round(seed, quantities)
    honest = fedra.FedRA()(updates, quantities)
    claimed = quantities.copy()
    claimed[3] *= factor
    verdict = fedra.FedRA()(updates, claimed)
    fair = quantities[3] / quantities.sum()
    assert honest.weights[3] <= 2 * fair
    assert verdict.weights[3] <= 16 * fair


def test_everybody_alike_is_a_plain_average():
    verdict = fedra.FedRA()(np.ones((8, 3)), np.arange(1.0, 9.0))
    assert verdict.kept.all()
    np.testing.assert_allclose(verdict.weights, np.arange(1.0, 9.0) / 36)
    assert np.isinf(verdict.implied_quantities).all()


def test_a_stranger_among_clients_that_are_all_alike_is_left_out():
    updates = np.ones((9, 3))
    updates[4] = 2
    verdict = fedra.FedRA()(updates, [5] * 9)
    assert verdict.kept.tolist() == [i != 4 for i in range(9)]


def test_a_ratio_of_nought_believes_all_claims():
    rng = np.random.default_rng(0)
    verdict = fedra.FedRA(malicious_ratio=0)(rng.standard_normal((6, 5)), [1, 2, 3, 4, 5, 1e9])
    assert verdict.kept.all()
    assert verdict.weights[5] > 0.99


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("claims", [{0: 1.7e308}, {0: 1.7e308, 1: 1.7e308}, dict.fromkeys(range(8), 1.7e308)])
def test_huge_quantities_do_not_overflow(claims):
    quantities = np.arange(5.0, 13.0)
    _, updates = honest_round(3, quantities, 40)
    for client, claim in claims.items():
        quantities[client] = claim
    for num_liars in range(4):
        found = weigh_evidence(reference.pairwise_squared_l2(updates), quantities, num_liars)
        assert not np.isnan(found.implied).any()
        assert not np.isnan(found.excess).any()
        assert np.isfinite(found.counted).all()
        assert found.counted.max() > 0
        assert found.kept.any()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("liars", [1, 2, 8])
def test_the_largest_claims_give_a_finite_result(liars):
    quantities = np.arange(5.0, 13.0)
    _, updates = honest_round(3, quantities, 40)
    quantities[:liars] = 2.0**53
    verdict = fedra.FedRA()(updates, quantities)
    assert np.isfinite(verdict.update).all()
    assert not np.isnan(verdict.implied_quantities).any()
    assert all(len(reason) < 200 for reason in verdict.reasons)
