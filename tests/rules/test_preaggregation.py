from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference import preaggregation as reference
from tests.strategies import SEEDS, make_round, rounds

import fedra
from fedra.rules.preaggregation import ARC, NNM, PREAGGREGATORS, Bucketing, Preceded, make_preaggregator
from fedra.screening import screen

RNG = np.random.default_rng(0)


def cohort_of(made):
    return screen(made.updates, made.quantities).cohort


@given(rounds(least_clients=4))
def test_nnm_is_the_mean_of_the_nearest(made):
    made = dataclasses.replace(made, updates=made.updates.astype(np.float64))
    mixing = NNM().mix(cohort_of(made), 1, RNG)
    rows, claims = reference.nnm(made.updates, made.quantities, 1)
    np.testing.assert_allclose(mixing.matrix @ made.updates, rows, rtol=1e-9, atol=1e-12 * abs(made.updates).max())
    np.testing.assert_allclose(mixing.quantities, claims, rtol=1e-12)


@pytest.mark.parametrize("updates", [np.zeros((9, 4)), np.ones((9, 4)), np.repeat(np.eye(3), 3, axis=0)])
def test_nnm_leaves_nobody_out_for_sending_what_others_send(updates):
    rule = Preceded(rule=fedra.Median(), before=NNM(), malicious_ratio=0.3)
    assert (np.diag(NNM().mix(screen(updates, np.ones(9)).cohort, 3, RNG).matrix) > 0).all()
    assert rule(updates, np.ones(9)).kept.all()


def test_a_client_that_is_part_of_no_row_has_no_score():
    updates = np.zeros((8, 4))
    updates[0] = 1.0
    verdict = Preceded(rule=fedra.Krum(num_malicious=1), before=ARC())(updates, np.ones(8))
    assert not verdict.kept[0]
    np.testing.assert_array_equal(np.isnan(verdict.scores), np.arange(8) == 0)
    assert verdict.to_records()[0]["score"] is None


def test_a_group_may_be_larger_than_any_round():
    verdict = Preceded(rule=fedra.FedAvg(), before=Bucketing(size=10**30))(np.eye(4), np.ones(4))
    np.testing.assert_allclose(verdict.update, 0.25)


@given(rounds(least_clients=4), st.integers(0, 5))
def test_arc_cuts_the_longest_to_the_next(made, malicious):
    malicious = min(malicious, (len(made) - 1) // 2)
    made = dataclasses.replace(made, updates=made.updates.astype(np.float64))
    mixing = ARC().mix(cohort_of(made), malicious, RNG)
    expected = reference.arc(made.updates, malicious)
    np.testing.assert_allclose(mixing.matrix @ made.updates, expected, rtol=1e-6, atol=1e-12 * abs(made.updates).max())


@given(rounds(), st.integers(1, 5), SEEDS)
def test_buckets_hold_everybody_once(made, size, seed):
    made = dataclasses.replace(made, updates=made.updates.astype(np.float64))
    mixing = Bucketing(size=size).mix(cohort_of(made), 0, np.random.default_rng(seed))
    groups = [list(np.flatnonzero(row)) for row in mixing.matrix]
    assert sorted(place for group in groups for place in group) == list(range(len(made)))
    assert {len(group) for group in groups[:-1]} <= {size}
    rows, claims = reference.buckets(made.updates, made.quantities, groups)
    np.testing.assert_allclose(mixing.matrix @ made.updates, rows, rtol=1e-9, atol=1e-12 * abs(made.updates).max())
    np.testing.assert_allclose(mixing.quantities, claims, rtol=1e-12)


@pytest.mark.parametrize("before", PREAGGREGATORS)
@pytest.mark.parametrize("name", fedra.RULES)
def test_every_rule_takes_every_preaggregator(before, name):
    made = make_round(3, 24, 30, np.float32, liars=1)
    ratio = {"malicious_ratio": 0.04} if "malicious_ratio" in fedra.rules.rule_parameters(name) else {}
    rule = Preceded(rule=fedra.make_rule(name, **ratio), before=make_preaggregator(before), malicious_ratio=0.04)
    verdict = rule(made.updates, made.quantities)
    assert np.isfinite(verdict.update).all()
    assert verdict.rule == f"{before}+{name}"
    again = rule(made.updates, made.quantities)
    np.testing.assert_array_equal(verdict.update, again.update)
    if verdict.weights is not None:
        assert verdict.weights.sum() == pytest.approx(1)
        assert (verdict.weights[~verdict.kept] == 0).all()
        if before != "arc" and name not in ("norm-bound",):
            np.testing.assert_allclose(verdict.weights @ made.updates, verdict.update, rtol=1e-3, atol=1e-3)
    state = verdict.state
    assert int(state["rounds"]) == 1
    assert int(rule(made.updates, made.quantities, state=state).state["rounds"]) == 2


def test_buckets_are_drawn_anew_in_each_round_and_by_seed():
    made = make_round(1, 20, 6)
    rule = Preceded(rule=fedra.Median(), before=Bucketing(size=4))
    first = rule(made.updates, made.quantities)
    second = rule(made.updates, made.quantities, state=first.state)
    other = dataclasses.replace(rule, seed=1)(made.updates, made.quantities)
    assert len({v.update.tobytes() for v in (first, second, other)}) == 3


@settings(max_examples=30)
@given(rounds(least_clients=9, most_clients=15))
def test_nnm_before_the_median_is_the_median_of_the_reference(made):
    made = dataclasses.replace(made, updates=made.updates.astype(np.float64))
    rule = Preceded(rule=fedra.Median(), before=NNM(), malicious_ratio=0.2)
    malicious = -(-len(made) * 2 // 10)
    rows, _ = reference.nnm(made.updates, made.quantities, malicious)
    verdict = rule(made.updates, made.quantities)
    np.testing.assert_allclose(verdict.update, np.median(rows, axis=0), rtol=1e-6, atol=1e-9 * abs(made.updates).max())


def test_too_small_after_grouping_is_refused_with_the_reason():
    rule = Preceded(rule=fedra.Krum(malicious_ratio=0.1), before=Bucketing(size=4))
    with pytest.raises(ValueError, match="after bucketing: krum needs n > 2m"):
        rule(np.eye(12), np.ones(12))


@pytest.mark.parametrize(
    "change",
    [
        lambda s: {},
        lambda s: {**s, "rounds": np.asarray(-1)},
        lambda s: {**s, "rounds": np.asarray(2**63 - 1)},
        lambda s: {**s, "rounds": 3},
        lambda s: {**s, "rounds": np.zeros(2, dtype=np.int64)},
        lambda s: {**s, "x": np.zeros(2)},
        lambda s: {**s, "rule.centre": np.zeros(3)},
        lambda s: {**s, 5: np.zeros(3)},
        lambda s: {name: a for name, a in s.items() if name == "rounds"},
        lambda s: [1],
    ],
)
def test_a_state_that_cannot_be_its_own_is_refused(change):
    rule = Preceded(rule=fedra.CenteredClipping(), before=NNM())
    state = rule.init(6)
    assert rule.restore(state, 6).keys() == {"rounds", "rule.centre"}
    with pytest.raises(ValueError, match=r"it |rounds|centre"):
        rule.restore(change(state), 6)


def test_what_the_inner_rule_remembers_is_carried_on():
    made = make_round(5, 11, 7)
    rule = Preceded(rule=fedra.CenteredClipping(), before=NNM())
    first = rule(made.updates, made.quantities)
    np.testing.assert_array_equal(first.state["rule.centre"], first.update.astype(np.float64))
    moved = rule(made.updates + 5, made.quantities, state=first.state)
    fresh = rule(made.updates + 5, made.quantities)
    assert (moved.update != fresh.update).any()


def test_names_and_parameters_that_are_wrong_are_named():
    with pytest.raises(ValueError, match="unknown pre-aggregator 'nmn'; did you mean 'nnm'"):
        make_preaggregator("nmn")
    with pytest.raises(TypeError, match="'bucketing' has no parameter 's'; valid: size"):
        make_preaggregator("bucketing", s=3)
    with pytest.raises(ValueError, match="size=0; give a whole number of at least 1"):
        make_preaggregator("bucketing", size=0)
    with pytest.raises(TypeError, match="rule='median'; give a rule"):
        Preceded(rule="median", before=NNM())
    with pytest.raises(TypeError, match="before='nnm'; give a pre-aggregator"):
        Preceded(rule=fedra.Median(), before="nnm")
