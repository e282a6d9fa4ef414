"""Truncate: the cap on quantities, and the weighted trimmed mean."""

import math
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import reference
from tests.comparing import assert_near
from tests.reference.truncate import top_share_holds
from tests.strategies import rounds

import fedra
from fedra.rules.truncate import truncation_cap

SMALL = st.lists(st.integers(1, 300), min_size=2, max_size=25)
LARGE = st.lists(st.floats(1, 1e15).map(math.floor) | st.integers(1, 50), min_size=2, max_size=25)


def is_largest_cap(quantities, cap):
    """Whether the condition holds at `cap` and no longer at the next integer; the share grows with the cap."""
    if math.isinf(cap):
        return len(set(quantities)) == 1 or top_share_holds(quantities, math.ceil(max(quantities)))
    return top_share_holds(quantities, int(cap)) and not top_share_holds(quantities, int(cap) + 1)


@given(SMALL)
def test_the_cap_is_what_a_scan_over_all_integers_finds(quantities):
    expected = reference.largest_cap(quantities)
    assert truncation_cap(np.array(quantities, dtype=float)) == (math.inf if expected is None else expected)


@given(LARGE)
def test_a_large_cap_is_the_largest_at_which_the_condition_holds(quantities):
    assert is_largest_cap(quantities, truncation_cap(np.array(quantities, dtype=float)))


@given(rounds(least_clients=1))
def test_truncate_is_the_weighted_trimmed_mean_of_capped_quantities(cohort):
    cap = truncation_cap(cohort.quantities)
    verdict = fedra.Truncate()(cohort.updates, cohort.quantities)
    assert len(cohort) == 1 or is_largest_cap(cohort.quantities.tolist(), cap)
    assert_near(verdict.update, reference.truncate(cohort.updates, cohort.quantities, cap), cohort.updates)
    assert verdict.weights is None


def test_equal_quantities_are_not_cut():
    assert truncation_cap(np.full(7, 40.0)) == math.inf


def test_by_hand():
    quantities = np.array([1.0, 2.0, 3.0, 100.0])
    assert truncation_cap(quantities) == 6  # int(4 * 0.1 + 1) = 1, and U <= (1 + 2 + 3 + U) / 2
    updates = np.array([[0.0], [1.0], [2.0], [3.0]])
    # Weights 1, 2, 3, 6: ranks 1/24, 4/24, 9/24, 18/24; quantiles 0.1 -> 7/15, 0.9 -> 3.
    verdict = fedra.Truncate()(updates, quantities)
    assert verdict.update.tolist() == pytest.approx([(1 * 2 + 2 * 3) / 5])


def test_the_count_at_the_top_is_of_the_exact_product():
    """30 clients: k = int(30 * 0.1 + 1) = 4, so 4 equal giants may hold half."""
    quantities = np.array([100.0] * 4 + [1.0] * 26)
    assert truncation_cap(quantities) == 6


def test_values_exactly_at_a_quantile_are_left_out():
    """15 equal weights: ranks (i + 0.5)/15, so the second value sits exactly at 0.1."""
    updates = np.arange(15.0)[:, np.newaxis] ** 2
    kept = np.arange(2, 13) ** 2
    assert fedra.Truncate()(updates, [7] * 15).update[0] == pytest.approx(kept.mean())


def test_nothing_strictly_between_gives_the_midpoint():
    assert fedra.Truncate()(np.array([[1.0], [2.0]]), [1, 1]).update.tolist() == [1.5]
    assert fedra.Truncate()(np.array([[5.0]]), [3]).update.tolist() == [5.0]
    assert fedra.Truncate()(np.full((6, 2), 4.0), [1, 2, 3, 4, 5, 6]).update.tolist() == [4.0, 4.0]


def calls_of(name, function):
    """How often a Python function of this name is entered while `function` runs."""
    count = 0

    def profile(frame, event, argument):
        nonlocal count
        count += event == "call" and frame.f_code.co_name == name

    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(("claim", "most"), [(1e6, 25), (1e12, 45), (1e308, 1030)])
def test_a_huge_claim_costs_a_few_evaluations_of_the_cap(claim, most):
    quantities = np.array([10.0] * 19 + [claim])
    assert truncation_cap(quantities) == 150  # k = 3, and U + 20 <= (U + 190) / 2
    assert 0 < calls_of("allowed", lambda: truncation_cap(quantities)) <= most


@pytest.mark.parametrize("claim", [1e12, 2.0**53])
def test_a_huge_claim_counts_no_more_than_the_cap(claim):
    rng = np.random.default_rng(1)
    updates = rng.standard_normal((20, 5))
    quantities = np.arange(1.0, 21.0)
    modest = quantities.copy()
    quantities[3] = claim
    modest[3] = truncation_cap(quantities)
    assert modest[3] < 1000
    np.testing.assert_array_equal(
        fedra.Truncate()(updates, quantities).update, fedra.Truncate()(updates, modest).update
    )


@pytest.mark.parametrize(
    ("name", "value"), [("alpha", 1.0), ("alpha", -0.1), ("share", 1.5), ("beta", 0.5), ("beta", math.nan)]
)
def test_parameters_outside_their_range_are_named(name, value):
    with pytest.raises(ValueError, match=rf"{name}={value!r}; give a number in \[0, "):
        fedra.Truncate(**{name: value})


def test_parameters_of_another_type_are_named():
    with pytest.raises(TypeError, match=r"beta='0\.1'; give a number"):
        fedra.Truncate(beta="0.1")
