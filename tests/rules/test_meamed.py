"""The mean around the median."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests import reference
from tests.comparing import assert_near
from tests.strategies import rounds

import fedra


@given(rounds(least_clients=1), st.integers(0, 9))
def test_it_averages_the_nearest_values(cohort, malicious):
    assume(2 * malicious < len(cohort))
    # With an even number of values both middle ones are equally near, where rounding may choose either.
    assume(len(cohort) % 2 == 1 or malicious % 2 == 0)
    verdict = fedra.MeaMed(num_malicious=malicious)(cohort.updates, cohort.quantities)
    assert_near(verdict.update, reference.meamed(cohort.updates, malicious), cohort.updates)
    assert verdict.num_malicious == malicious
    assert verdict.kept.all()
    assert verdict.weights is None


def test_by_hand():
    updates = np.array([[1.0], [100.0], [3.0], [2.0], [5.0]])
    assert fedra.MeaMed(num_malicious=1)(updates, [1] * 5).update.tolist() == [2.75]
    assert fedra.MeaMed(num_malicious=2)(updates, [1] * 5).update.tolist() == [2.0]
    assert fedra.MeaMed(num_malicious=0)(updates, [1] * 5).update[0] == pytest.approx(22.2)


def test_a_minority_cannot_pull_it_away():
    updates = np.random.default_rng(0).standard_normal((11, 30))
    updates[:5] = 1e9
    assert np.abs(fedra.MeaMed(num_malicious=5)(updates, [1] * 11).update).max() < 5


def test_too_many_assumed_names_the_condition():
    with pytest.raises(ValueError, match=r"meamed needs n > 2m for m .* has n = 4 and m = 2; .*clamp=True"):
        fedra.MeaMed(num_malicious=2)(np.zeros((4, 2)), [1] * 4)
