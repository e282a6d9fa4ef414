"""Median and trimmed mean."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests import reference
from tests.comparing import assert_near
from tests.strategies import rounds

import fedra


@given(rounds(least_clients=1))
def test_median_takes_the_middle_of_each_coordinate(cohort):
    verdict = fedra.Median()(cohort.updates, cohort.quantities)
    assert_near(verdict.update, reference.median(cohort.updates), cohort.updates)
    assert verdict.weights is None
    assert verdict.kept.all()


@given(rounds(least_clients=1), st.integers(0, 9))
def test_trimmed_mean_drops_both_ends(cohort, trim):
    assume(2 * trim < len(cohort))
    verdict = fedra.TrimmedMean(num_malicious=trim)(cohort.updates, cohort.quantities)
    assert_near(verdict.update, reference.trimmed_mean(cohort.updates, trim), cohort.updates)
    assert verdict.num_malicious == trim


@given(rounds(least_clients=3))
def test_trimmed_mean_of_a_ratio_trims_its_ceiling(cohort):
    verdict = fedra.TrimmedMean(malicious_ratio=0.2)(cohort.updates, cohort.quantities)
    assert verdict.num_malicious == -(-len(cohort) // 5)


def test_by_hand():
    updates = np.array([[1.0], [100.0], [3.0], [2.0]])
    assert fedra.Median()(updates, [1] * 4).update.tolist() == [2.5]
    assert fedra.TrimmedMean(num_malicious=1)(updates, [1] * 4).update.tolist() == [2.5]
    assert fedra.TrimmedMean(num_malicious=0)(updates, [1] * 4).update.tolist() == [26.5]


def test_the_median_of_two_huge_values_does_not_overflow():
    updates = np.array([[3e38], [3.2e38]], dtype=np.float32)
    assert fedra.Median()(updates, [1, 1]).update[0] == pytest.approx(3.1e38)


def test_trimming_everything_names_the_condition():
    with pytest.raises(ValueError, match=r"trimmed-mean needs n > 2m for m .* has n = 4 and m = 2; .*clamp=True"):
        fedra.TrimmedMean(num_malicious=2)(np.zeros((4, 2)), [1] * 4)


def test_clamping_trims_what_can_be_trimmed():
    verdict = fedra.TrimmedMean(num_malicious=9, clamp=True)(np.array([[1.0], [2.0], [9.0]]), [1] * 3)
    assert verdict.update.tolist() == [2.0]
    assert verdict.num_malicious == 1
