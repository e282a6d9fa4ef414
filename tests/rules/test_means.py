"""FedAvg, Uniform and Norm-bound."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import reference
from tests.comparing import assert_near
from tests.strategies import rounds

import fedra


@given(rounds(least_clients=1))
def test_fedavg_is_the_quantity_weighted_mean(cohort):
    verdict = fedra.FedAvg()(cohort.updates, cohort.quantities)
    assert_near(verdict.update, reference.fedavg(cohort.updates, cohort.quantities), cohort.updates)
    np.testing.assert_allclose(verdict.weights, cohort.quantities / cohort.quantities.sum(), rtol=1e-14)


@given(rounds(least_clients=1))
def test_uniform_is_the_mean(cohort):
    verdict = fedra.Uniform()(cohort.updates, cohort.quantities)
    assert_near(verdict.update, reference.uniform(cohort.updates), cohort.updates)
    assert set(verdict.weights) == {1 / len(cohort)}


@given(rounds(least_clients=1), st.sampled_from([None, 1e-3, 1.0, 1e9]))
def test_norm_bound_cuts_long_updates_then_averages(cohort, bound):
    verdict = fedra.NormBound(bound=bound)(cohort.updates, cohort.quantities)
    assert_near(verdict.update, reference.norm_bound(cohort.updates, cohort.quantities, bound), cohort.updates)


def test_fedavg_by_hand():
    verdict = fedra.FedAvg()(np.array([[1.0, 0.0], [4.0, 8.0]]), [3, 1])
    assert verdict.update.tolist() == [1.75, 2.0]
    assert verdict.weights.tolist() == [0.75, 0.25]


def test_norm_bound_by_hand():
    updates = np.array([[3.0, 4.0], [0.0, 1.0], [0.0, 0.0]])
    assert fedra.NormBound(bound=2.5)(updates, [1, 1, 2]).update.tolist() == [0.375, 0.75]
    assert fedra.NormBound()(updates, [1, 1, 2]).update.tolist() == pytest.approx([0.15, 0.45])


def test_norm_bound_of_a_cohort_whose_median_norm_is_zero():
    updates = np.zeros((5, 3))
    updates[4] = 7.0
    assert fedra.NormBound()(updates, [1] * 5).update.tolist() == [0, 0, 0]


def test_the_largest_claims_share_the_result():
    verdict = fedra.FedAvg()(np.array([[2.0], [4.0], [9.0]]), [2**53, 2**53, 1])
    assert verdict.update[0] == pytest.approx(3.0, rel=1e-14)
    assert verdict.weights.sum() == 1


@pytest.mark.parametrize("bound", [0, -1.0, float("nan"), float("inf")])
def test_a_bound_that_is_not_positive_and_finite_is_refused(bound):
    with pytest.raises(ValueError, match=f"bound={bound!r}; give a positive number"):
        fedra.NormBound(bound=bound)


@pytest.mark.parametrize("bound", ["1", True, [1.0]])
def test_a_bound_of_another_type_is_refused(bound):
    with pytest.raises(TypeError, match="give a positive number, or None"):
        fedra.NormBound(bound=bound)
