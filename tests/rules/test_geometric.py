"""RFA, the geometric median."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import reference
from tests.comparing import assert_near
from tests.strategies import make_round, rounds

import fedra


@given(rounds(least_clients=1), st.sampled_from([1, 4, 10]), st.sampled_from([1e-6, 0.5, 1.0]))
def test_rfa_is_smoothed_weiszfeld(cohort, iterations, smoothing):
    verdict = fedra.RFA(iterations=iterations, smoothing=smoothing)(cohort.updates, cohort.quantities)
    expected = reference.rfa(cohort.updates, cohort.quantities, iterations, smoothing)
    assert_near(verdict.update, expected, cohort.updates)
    assert verdict.weights.sum() == pytest.approx(1)


@pytest.mark.parametrize("spread", [1.0, 1e-3])
def test_rfa_of_long_float32_updates_is_as_near(spread):
    cohort = make_round(0, 15, 6000, np.float32, spread=spread, base=1.0, liars=3)
    verdict = fedra.RFA()(cohort.updates, cohort.quantities)
    assert_near(verdict.update, reference.rfa(cohort.updates, cohort.quantities), cohort.updates)


def test_by_hand():
    verdict = fedra.RFA(iterations=1)(np.array([[0.0], [0.0], [3.0]]), [1, 1, 1])
    assert verdict.update.tolist() == pytest.approx([0.6])


def test_iterations_approach_the_geometric_median():
    """Of points on a line the geometric median is the median, which a far outlier does not move."""
    updates = np.array([[0.0], [1.0], [2.0], [3.0], [1e6]])
    assert fedra.RFA(iterations=400)(updates, [1] * 5).update[0] == pytest.approx(2.0, abs=1e-2)


def test_a_client_exactly_at_the_mean_has_distance_zero_and_no_harm_comes():
    updates = np.array([[-1.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
    verdict = fedra.RFA()(updates, [1, 1, 1])
    np.testing.assert_allclose(verdict.update, [0, 0], atol=1e-12)
    np.testing.assert_allclose(verdict.update, reference.rfa(updates, [1, 1, 1]), atol=1e-12)


def test_identical_updates_stop_at_their_mean():
    verdict = fedra.RFA()(np.full((5, 4), 0.3, dtype=np.float32), [1, 2, 3, 4, 5])
    np.testing.assert_array_equal(verdict.update, np.full(4, 0.3, dtype=np.float32))
    np.testing.assert_allclose(verdict.weights, np.arange(1, 6) / 15)


@pytest.mark.parametrize("smoothing", [0, -1e-6, float("nan"), float("inf")])
def test_smoothing_must_be_positive(smoothing):
    with pytest.raises(ValueError, match=f"smoothing={smoothing!r}; give a positive number"):
        fedra.RFA(smoothing=smoothing)


def test_wrong_types_are_refused():
    with pytest.raises(TypeError, match="smoothing='1'"):
        fedra.RFA(smoothing="1")
    with pytest.raises(ValueError, match="iterations=0; give a whole number of at least 1"):
        fedra.RFA(iterations=0)
    with pytest.raises(TypeError, match=r"iterations=2\.5"):
        fedra.RFA(iterations=2.5)
