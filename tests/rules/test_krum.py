"""Krum, multi-Krum and Bulyan."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests import reference
from tests.comparing import assert_near, clear_cut
from tests.strategies import rounds

import fedra


def score_tolerance(cohort):
    return 2e-6 if cohort.updates.dtype == np.float32 else 1e-12


@given(rounds(), st.integers(0, 8))
def test_krum_takes_the_least_score(cohort, num_malicious):
    assume(len(cohort) > 2 * num_malicious + 2)
    scores = reference.krum_scores(cohort.updates, num_malicious)
    assume(clear_cut(scores, 1))
    verdict = fedra.Krum(num_malicious=num_malicious)(cohort.updates, cohort.quantities)
    chosen = reference.krum(cohort.updates, num_malicious)
    np.testing.assert_allclose(verdict.scores, scores, rtol=score_tolerance(cohort))
    assert np.flatnonzero(verdict.kept).tolist() == [chosen]
    np.testing.assert_array_equal(verdict.update, cohort.updates[chosen])
    assert verdict.cut == verdict.scores[chosen]


@given(rounds(), st.integers(0, 8), st.one_of(st.none(), st.integers(1, 20)))
def test_multi_krum_averages_the_least_scores(cohort, num_malicious, selected):
    assume(len(cohort) > 2 * num_malicious + 2)
    assume(selected is None or selected <= len(cohort))
    count = len(cohort) - num_malicious - 2 if selected is None else selected
    assume(clear_cut(reference.krum_scores(cohort.updates, num_malicious), count))
    chosen, update = reference.multi_krum(cohort.updates, num_malicious, selected)
    verdict = fedra.MultiKrum(num_malicious=num_malicious, num_selected=selected)(cohort.updates, cohort.quantities)
    assert np.flatnonzero(verdict.kept).tolist() == sorted(chosen)
    assert set(verdict.weights[verdict.kept]) == {1 / count}
    assert_near(verdict.update, update, cohort.updates)


@given(rounds(least_clients=3, dtypes=st.just(np.float64)), st.integers(0, 4))
def test_bulyan_rescores_after_each_pick(cohort, num_malicious):
    assume(len(cohort) >= 4 * num_malicious + 3)
    chosen, update = reference.bulyan(cohort.updates, num_malicious)
    verdict = fedra.Bulyan(num_malicious=num_malicious)(cohort.updates, cohort.quantities)
    assert np.flatnonzero(verdict.kept).tolist() == chosen
    assert_near(verdict.update, update, cohort.updates)
    assert verdict.num_malicious == num_malicious


@given(rounds(least_clients=7), st.integers(1, 4))
def test_bulyan_in_float32_equals_bulyan_of_the_same_values_in_float64(cohort, num_malicious):
    assume(len(cohort) >= 4 * num_malicious + 3)
    rule = fedra.Bulyan(num_malicious=num_malicious)
    single = rule(cohort.updates.astype(np.float32), cohort.quantities)
    double = rule(cohort.updates.astype(np.float32).astype(np.float64), cohort.quantities)
    np.testing.assert_array_equal(single.kept, double.kept)
    assert_near(single.update, double.update, cohort.updates.astype(np.float32))


def test_krum_by_hand():
    updates = np.array([[0.0], [1.0], [3.0], [10.0], [10.5]])
    verdict = fedra.Krum(num_malicious=1)(updates, [1] * 5)
    assert verdict.scores.tolist() == [1 + 9, 1 + 4, 4 + 9, 0.25 + 49, 0.25 + 56.25]
    assert verdict.update.tolist() == [1.0]


def test_exact_ties_go_to_the_first_client():
    updates = np.array([[0.0], [4.0], [0.0], [4.0], [2.0], [2.0]])
    verdict = fedra.Krum(num_malicious=0)(updates[:4], [1] * 4)
    assert np.flatnonzero(verdict.kept).tolist() == [0]
    verdict = fedra.MultiKrum(num_malicious=1, num_selected=3)(updates, [1] * 6)
    assert set(verdict.scores) == {8.0}
    assert np.flatnonzero(verdict.kept).tolist() == [0, 1, 2]


def test_one_shot_selection_would_differ_from_bulyan():
    """Seven clients on a line where scoring once and scoring anew choose different clients."""
    updates = np.array([[0.0], [1.0], [2.1], [3.3], [10.0], [10.1], [10.3]])
    chosen, _ = reference.bulyan(updates, 1)
    verdict = fedra.Bulyan(num_malicious=1)(updates, [1] * 7)
    one_shot, _ = reference.multi_krum(updates, 1, 5)
    assert np.flatnonzero(verdict.kept).tolist() == chosen
    assert chosen != sorted(one_shot)


def test_claims_do_not_matter():
    rng = np.random.default_rng(3)
    updates = rng.standard_normal((9, 6))
    for name in ("krum", "multi-krum", "bulyan"):
        rule = fedra.make_rule(name)
        assert rule(updates, [1] * 9).update.tolist() == rule(updates, [10**k for k in range(9)]).update.tolist()


def test_selecting_more_than_there_are_names_both():
    with pytest.raises(ValueError, match="n = 5 and num_selected = 6"):
        fedra.MultiKrum(num_malicious=0, num_selected=6)(np.eye(5), [1] * 5)
    assert fedra.MultiKrum(num_malicious=0, num_selected=6, clamp=True)(np.eye(5), [1] * 5).kept.all()
