"""The quantity that a client's distances speak for, where FedRA goes by scores."""

import numpy as np
import pytest
from tests.reference import pairwise_l1

import fedra
from fedra.rules.implied import implied_quantities


def honest_round(seed, quantities, dimension=3000):
    """Updates whose noise shrinks as 1/sqrt(q), as means over q samples do."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((len(quantities), dimension))
    return 0.1 * rng.standard_normal(dimension) + noise / np.sqrt(np.asarray(quantities))[:, np.newaxis]


def test_honest_clients_behave_as_they_claim():
    quantities = np.array([4, 9, 16, 25, 36, 50, 64, 80, 100, 5, 10, 20], dtype=float)
    verdict = fedra.FedRA(estimator="mcne")(honest_round(0, quantities), quantities)
    np.testing.assert_allclose(verdict.implied_quantities, quantities, rtol=0.3)


def test_the_reason_says_what_a_liar_behaves_like():
    true = np.array([4, 9, 16, 25, 36, 50, 64, 80, 100, 5, 10, 20], dtype=float)
    claimed = true.copy()
    claimed[0] = 9000
    verdict = fedra.FedRA(setting="fixed")(honest_round(1, true), claimed)
    assert not verdict.kept[0]
    assert verdict.implied_quantities[0] == pytest.approx(4, rel=0.3)
    assert "claims 9,000 samples and behaves like" in verdict.reasons[0]


def test_the_implied_quantity_solves_its_equation():
    quantities = np.array([1, 3, 7, 20, 50, 120, 300, 700, 2000], dtype=float)
    updates = honest_round(2, quantities, 50)
    verdict = fedra.FedRA(estimator="mcne")(updates, quantities)
    distances = pairwise_l1(updates)
    kept = np.flatnonzero(verdict.kept)
    scale = np.median(
        [distances[i, j] / np.sqrt(1 / quantities[i] + 1 / quantities[j]) for i in kept for j in kept if i < j]
    )
    finite = np.flatnonzero(np.isfinite(verdict.implied_quantities))
    assert len(finite) > 5
    for i in finite:
        others = [j for j in kept if j != i]
        seen = sum(np.sqrt(quantities[j]) * distances[i, j] for j in others)
        expected = scale * sum(np.sqrt(quantities[j] / verdict.implied_quantities[i] + 1) for j in others)
        assert seen == pytest.approx(expected, rel=1e-9)


def test_identical_clients_imply_nothing():
    assert fedra.FedRA(estimator="mcne")(np.ones((8, 3)), [1] * 8).implied_quantities is None


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("claims", [{0: 1.7e308}, {0: 1.7e308, 1: 1.7e308}, dict.fromkeys(range(8), 1.7e308)])
def test_huge_quantities_do_not_overflow(claims):
    quantities = np.arange(5.0, 13.0)
    distances = pairwise_l1(honest_round(3, quantities, 40))
    for client, claim in claims.items():
        quantities[client] = claim
    implied = implied_quantities(distances, quantities, np.ones(8, dtype=bool))
    assert not np.isnan(implied).any()
    assert (implied > 0).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("liars", [1, 2, 8])
def test_the_largest_claims_have_an_implied_quantity(liars):
    quantities = np.arange(5.0, 13.0)
    updates = honest_round(3, quantities, 40)
    quantities[:liars] = 2.0**53
    verdict = fedra.FedRA(estimator="mcne")(updates, quantities)
    assert not np.isnan(verdict.implied_quantities).any()
    assert (verdict.implied_quantities > 0).all()
    assert all(len(reason) < 200 for reason in verdict.reasons)
