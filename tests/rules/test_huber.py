"""Huber-loss minimisation: the steps, that they lead to the least loss, and what claims do."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import reference
from tests.comparing import assert_near
from tests.strategies import SEEDS, make_round, rounds

import fedra
from fedra.rules.trusted_weights import WEIGHTS, believed_quantities
from fedra.screening import screen


@pytest.mark.parametrize("weights", WEIGHTS)
@given(rounds(least_clients=5), st.sampled_from([None, None, 1e-3, 1.0, 1e9]), st.sampled_from([1, 3, 8]))
def test_the_steps_are_the_formula(weights, cohort, threshold, iterations):
    believed = believed_quantities(screen(cohort.updates, cohort.quantities).cohort, weights)
    rule = fedra.Huber(weights=weights, threshold=threshold, iterations=iterations)
    verdict = rule(cohort.updates, cohort.quantities)
    claims = np.ones(len(cohort)) if weights == "equal" else cohort.quantities
    expected = reference.huber(cohort.updates, believed, claims, threshold, iterations)
    assert_near(verdict.update, expected, cohort.updates, factor=10)
    assert verdict.weights.sum() == pytest.approx(1)


@settings(max_examples=25)
@given(SEEDS, st.sampled_from([0.5, 3.0, 30.0]))
def test_many_steps_lead_to_the_least_loss(seed, threshold):
    made = make_round(seed, 9, 4, liars=2)
    claims = np.minimum(made.quantities, 50.0)
    found = fedra.Huber(threshold=threshold, iterations=3000)(made.updates, claims).update
    loss = reference.huber_loss(found, made.updates, claims, claims, threshold)
    rng = np.random.default_rng(seed)
    for size in (1e-1, 1e-2, 1e-3):
        moved = found + size * rng.standard_normal((20, 4))
        assert min(reference.huber_loss(one, made.updates, claims, claims, threshold) for one in moved) >= loss * (
            1 - 1e-9
        )


def test_long_float32_updates_are_as_near():
    made = make_round(0, 15, 6000, np.float32, base=1.0, liars=3)
    expected = reference.huber(made.updates, made.quantities, made.quantities)
    assert_near(fedra.Huber()(made.updates, made.quantities).update, expected, made.updates, factor=4)


def test_by_hand():
    updates = np.array([[0.0], [1.0], [2.0], [10.0]])
    # The median is 1.5; the distances 1.5, 0.5, 0.5, 8.5 have the median 1.
    found = fedra.Huber(iterations=1)(updates, [1] * 4).update[0]
    assert found == pytest.approx((1 + 2 + 10 / 8.5) / (1 / 1.5 + 2 + 1 / 8.5))
    # Claims of 4 halve the threshold.
    found = fedra.Huber(iterations=1, threshold=1.0)(updates, [4] * 4).update[0]
    assert found == pytest.approx((1 + 2 + 5 / 8.5) / (0.5 / 1.5 + 2 + 0.5 / 8.5))


def test_a_wide_threshold_is_the_weighted_mean_and_a_narrow_one_the_geometric_median():
    made = make_round(2, 10, 6, liars=1)
    mean = reference.fedavg(made.updates, made.quantities)
    np.testing.assert_allclose(fedra.Huber(threshold=1e12)(made.updates, made.quantities).update, mean, rtol=1e-9)
    narrow = fedra.Huber(threshold=5e-324, iterations=300)(made.updates, [1] * 10)
    np.testing.assert_allclose(narrow.update, reference.rfa(made.updates, [1] * 10, 300), rtol=1e-4)


def test_beyond_the_cap_who_claims_more_must_be_nearer():
    rng = np.random.default_rng(0)
    updates = rng.standard_normal((20, 30))
    updates[0] += 3
    claims = (10**3, 10**4, 10**6)
    weights = [fedra.Huber(weights="capped")(updates, [claim, *[10] * 19]).weights[0] for claim in claims]
    assert weights[0] > weights[1] > weights[2]


def test_a_far_minority_hardly_moves_it():
    rng = np.random.default_rng(1)
    updates = rng.standard_normal((20, 40))
    honest = updates[4:].mean(axis=0)
    for distance in (1e3, 1e12, 1e30):
        updates[:4] = distance
        assert np.linalg.norm(fedra.Huber(weights="equal")(updates, [1] * 20).update - honest) < 2.5


@pytest.mark.parametrize("threshold", [0, -1.0, float("nan"), float("inf")])
def test_a_threshold_that_is_not_positive_and_finite_is_refused(threshold):
    with pytest.raises(ValueError, match=f"threshold={threshold!r}; give a positive number, or None"):
        fedra.Huber(threshold=threshold)


def test_wrong_types_are_refused():
    with pytest.raises(TypeError, match="threshold='1'"):
        fedra.Huber(threshold="1")
    with pytest.raises(ValueError, match="iterations=0; give a whole number of at least 1"):
        fedra.Huber(iterations=0)
