"""Centred trimmed meta-aggregation: the nearest by weight, whatever finds the centre."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests import reference
from tests.comparing import assert_near
from tests.strategies import make_round, rounds

import fedra
from fedra.rules.ctma import BASES
from fedra.rules.trusted_weights import WEIGHTS, believed_quantities
from fedra.screening import screen


def centre_of(base, updates, believed):
    counting = believed > 0
    rows, weights = np.asarray(updates, dtype=np.float64)[counting], believed[counting]
    if base == "rfa":
        return reference.rfa(rows, weights)
    return reference.median(rows) if base == "median" else reference.weighted_median(rows, weights)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("base", BASES)
@given(rounds(least_clients=5), st.sampled_from([0.0, 0.1, 0.3, 0.49]))
def test_it_is_the_mean_of_the_nearest_up_to_a_share_of_the_weight(weights, base, cohort, ratio):
    believed = believed_quantities(screen(cohort.updates, cohort.quantities).cohort, weights, ratio)
    centre = centre_of(base, cohort.updates, believed)
    away = np.linalg.norm(cohort.updates.astype(np.float64) - centre, axis=1)
    # Others than equal rows may be equally far only by rounding: the median of two is as far from both.
    order = np.argsort(away)
    gaps, other = np.diff(away[order]), np.diff(cohort.updates[order], axis=0).any(axis=1)
    assume(not (other & (gaps < 1e-5 * away.max())).any())
    rule = fedra.CTMA(weights=weights, base=base, malicious_ratio=ratio)
    verdict = rule(cohort.updates, cohort.quantities)
    expected, taken = reference.ctma(cohort.updates, believed, centre, ratio)
    assert_near(verdict.update, expected, cohort.updates, factor=10)
    np.testing.assert_allclose(verdict.weights, taken / taken.sum(), atol=1e-9)
    scale = float(np.abs(cohort.updates).max())
    np.testing.assert_allclose(verdict.scores, away, rtol=1e-6, atol=1e-6 * scale)


def test_by_hand():
    updates = np.array([[0.0], [1.0], [2.0], [3.0], [100.0]])
    verdict = fedra.CTMA(malicious_ratio=0.2)(updates, [1] * 5)
    assert verdict.update.tolist() == [1.5]
    assert verdict.kept.tolist() == [True] * 4 + [False]
    assert verdict.scores.tolist() == [2.0, 1.0, 0.0, 1.0, 98.0]
    assert verdict.reasons[4] == "distance 98 to the centre is beyond the nearest 80% of the weight"
    # Half of the fourth: weights 1, 1, 1 and 0.5 of 5 clients at a share of 0.3.
    assert fedra.CTMA(malicious_ratio=0.3)(updates[[1, 2, 2, 0, 4]], [1] * 5).update[0] == pytest.approx(5 / 3.5)


def test_rounding_lets_nobody_in():
    """Ten times a tenth is not 1 in floats; nine of ten clients are 0.9 all the same."""
    updates = np.arange(10.0)[:, np.newaxis] ** 2
    for claim in (1, 3, 7, 0.1 + 2):
        verdict = fedra.CTMA(malicious_ratio=0.1)(updates, [claim] * 10)
        assert verdict.kept.sum() == 9
        np.testing.assert_allclose(verdict.weights[verdict.kept], 1 / 9)


def test_whoever_lies_far_has_no_part_up_to_the_share_of_the_weight():
    rng = np.random.default_rng(0)
    updates = rng.standard_normal((30, 50))
    updates[:6] = 1e20
    verdict = fedra.CTMA(malicious_ratio=0.2)(updates, [10] * 30)
    np.testing.assert_allclose(verdict.update, updates[6:].mean(axis=0), rtol=1e-9)


def test_the_ratio_of_a_federation_is_the_share():
    made = make_round(1, 20, 5)
    rule = fedra.CTMA(weights="equal").for_federation(malicious_ratio=0.25)
    assert rule.malicious_ratio == 0.25
    assert rule(made.updates, made.quantities).kept.sum() == 15
    assert fedra.CTMA(weights="equal")(made.updates, made.quantities).kept.sum() == 18


def test_an_unknown_base_is_refused():
    with pytest.raises(ValueError, match=r"base='ctma'; .*weighted-median"):
        fedra.CTMA(base="ctma")
