"""The covariance-bound agnostic filter, against the covariance as a matrix."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests import reference
from tests.comparing import assert_near
from tests.reference.spectral import principal
from tests.strategies import SEEDS, make_round, rounds

import fedra
from fedra.kernels import pairwise_squared_l2
from fedra.rules.spectrum import principal_scores


@given(SEEDS, st.integers(2, 15), st.integers(1, 25), st.booleans())
def test_the_main_direction_is_that_of_the_covariance(seed, clients, dimension, sparse):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((clients, dimension)) * np.linspace(1, 3, dimension)
    weights = rng.uniform(0.1, 1, clients)
    if sparse:
        weights[0] = 0.0
    variance, scores = principal_scores(pairwise_squared_l2(rows), weights)
    expected, along = principal(rows, weights)
    assert variance == pytest.approx(expected, rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(scores, np.where(weights > 0, along, 0), atol=1e-6 * along.max() + 1e-12)


@given(rounds(least_clients=3, most_dimension=40), st.integers(0, 6))
def test_it_is_the_filter(cohort, malicious):
    assume(2 * malicious < len(cohort))
    verdict = fedra.CAF(num_malicious=malicious)(cohort.updates, cohort.quantities)
    expected, weights = reference.caf(cohort.updates, malicious)
    np.testing.assert_allclose(verdict.weights, weights / weights.sum(), atol=1e-5)
    assert_near(verdict.update, expected, cohort.updates, factor=1000)
    assert verdict.num_malicious == malicious


def test_by_hand():
    # Along the only direction the mean is 2 and the scores 4, 4, 4, 36: 1 - 1/9 stays of three, nothing of the last.
    updates = np.array([[0.0], [0.0], [0.0], [8.0]])
    verdict = fedra.CAF(num_malicious=1)(updates, [1] * 4)
    assert verdict.update.tolist() == [0.0]
    assert verdict.kept.tolist() == [True, True, True, False]
    np.testing.assert_allclose(verdict.scores, [1 / 9, 1 / 9, 1 / 9, 1])
    assert verdict.reasons[3] == "lies farthest along the direction of largest variance"


def test_nobody_malicious_is_the_mean():
    made = make_round(0, 9, 12)
    verdict = fedra.CAF(num_malicious=0)(made.updates, made.quantities)
    np.testing.assert_allclose(verdict.update, made.updates.mean(axis=0))
    assert verdict.scores.tolist() == [0.0] * 9


@pytest.mark.parametrize("distance", [1e2, 1e6, 1e100])
def test_colluders_far_away_lose_all_weight_however_far(distance):
    rng = np.random.default_rng(2)
    updates = rng.standard_normal((20, 60))
    updates[:2], updates[2:4] = distance, -2 * distance
    verdict = fedra.CAF(num_malicious=4)(updates, [1] * 20)
    assert not verdict.kept[:4].any()
    assert np.linalg.norm(verdict.update - updates[4:].mean(axis=0)) < 2.5


def test_the_order_of_clients_does_not_change_a_bit():
    made = make_round(3, 20, 30, liars=3)
    order = np.random.default_rng(0).permutation(20)
    rule = fedra.CAF(num_malicious=4)
    plain, moved = rule(made.updates, made.quantities), rule(made.updates[order], made.quantities[order])
    np.testing.assert_array_equal(moved.scores, plain.scores[order])
    np.testing.assert_array_equal(moved.weights, plain.weights[order])


def test_too_many_assumed_names_the_condition():
    with pytest.raises(ValueError, match=r"caf needs n > 2m for m .* has n = 4 and m = 2"):
        fedra.CAF(num_malicious=2)(np.zeros((4, 2)), [1] * 4)
