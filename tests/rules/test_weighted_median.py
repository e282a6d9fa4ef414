"""The weighted median of each coordinate."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import reference
from tests.comparing import assert_near
from tests.strategies import rounds

import fedra
from fedra.rules.trusted_weights import WEIGHTS, believed_quantities
from fedra.screening import screen


@pytest.mark.parametrize("weights", WEIGHTS)
@given(rounds(least_clients=5))
def test_it_is_the_middle_of_the_weight(weights, cohort):
    believed = believed_quantities(screen(cohort.updates, cohort.quantities).cohort, weights)
    verdict = fedra.WeightedMedian(weights=weights)(cohort.updates, cohort.quantities)
    assert_near(verdict.update, reference.weighted_median(cohort.updates, believed), cohort.updates)
    assert verdict.weights is None
    np.testing.assert_array_equal(verdict.kept, believed > 0)


@given(rounds(least_clients=1))
def test_with_equal_weights_it_is_the_median_bit_for_bit(cohort):
    verdict = fedra.WeightedMedian(weights="equal")(cohort.updates, cohort.quantities)
    assert verdict.update.tobytes() == fedra.Median()(cohort.updates, cohort.quantities).update.tobytes()


@given(rounds(least_clients=2, most_clients=8), st.lists(st.integers(1, 4), min_size=8, max_size=8))
def test_a_weight_of_k_is_k_clients(cohort, claims):
    """Small whole claims meet exact halves often."""
    claims = claims[: len(cohort)]
    many = np.repeat(cohort.updates, claims, axis=0)
    found = fedra.WeightedMedian()(cohort.updates, claims).update
    assert found.tobytes() == fedra.Median()(many, [1] * len(many)).update.tobytes()


def test_by_hand():
    updates = np.array([[1.0], [2.0], [10.0]])
    assert fedra.WeightedMedian()(updates, [1, 1, 1]).update.tolist() == [2.0]
    assert fedra.WeightedMedian()(updates, [1, 1, 2]).update.tolist() == [6.0]
    assert fedra.WeightedMedian()(updates, [1, 1, 3]).update.tolist() == [10.0]
    assert fedra.WeightedMedian()(updates, [2, 1, 1]).update.tolist() == [1.5]
