"""What holds for every rule, whatever the round."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.comparing import assert_near, assert_same_verdict, clear_cut
from tests.strategies import RULE_NAMES, SEEDS, make_round, rounds, steady_rule

import fedra
from fedra.rules.evidence import LEFT_OUT

every_rule = pytest.mark.parametrize("name", RULE_NAMES)
SCORED = ("krum", "multi-krum", "caf", "dnc", "ctma", "fedra", "concord")
# Bulyan's last picks compare single neighbours, where two clients tie by construction, unless m~ >= 3.
STEADY = {"bulyan": {"num_malicious": 3}}


def unclear(verdict):
    """Whether a scored choice hangs on less than rounding, where order may rightly decide."""
    if verdict.scores is None:
        return False
    if verdict.rule in ("fedra", "concord"):
        return bool((np.abs(verdict.scores / LEFT_OUT - 1) < 1e-5).any())
    return not clear_cut(verdict.scores, int(verdict.kept.sum()))


def cancelled(verdict, cohort):
    """Whether Concord's step is nothing but rounding: then so is which clients make it."""
    squared = [float(np.square(row.astype(np.float64)).sum()) for row in (verdict.update, *cohort.updates)]
    return verdict.rule == "concord" and squared[0] <= 1e-7 * max(squared[1:])


@every_rule
@given(rounds(least_clients=15), SEEDS)
def test_permuting_the_clients_permutes_the_verdict(name, cohort, seed):
    rule = steady_rule(name, **STEADY.get(name, {}))
    order = np.random.default_rng(seed).permutation(len(cohort))
    moved = cohort.permuted(order)
    before, after = rule(cohort.updates, cohort.quantities), rule(moved.updates, moved.quantities)
    assume(not unclear(before) and not cancelled(before, cohort))
    np.testing.assert_array_equal(after.kept, before.kept[order])
    assert after.num_malicious == before.num_malicious
    if before.scores is not None:
        np.testing.assert_array_equal(after.scores, before.scores[order])
    # Where clients outnumber coordinates, other weights make the same vector, and Concord may find any of them.
    if before.weights is not None and name != "concord":
        slack = 1e-9 if name in ("rfa", "huber") else 0.0
        np.testing.assert_allclose(after.weights, before.weights[order], rtol=1e-13, atol=slack)
    assert_near(after.update, before.update.astype(np.float64), cohort.updates)


@every_rule
@given(rounds(least_clients=8), st.sampled_from([2.0**-20, 0.5, 1024.0, -1.0]))
def test_rescaling_all_updates_rescales_the_result(name, cohort, factor):
    rule = steady_rule(name)
    before = rule(cohort.updates, cohort.quantities)
    assume(not unclear(before))
    scaled = cohort.updates * cohort.updates.dtype.type(factor)
    after = rule(scaled, cohort.quantities)
    np.testing.assert_array_equal(after.kept, before.kept)
    assert after.num_malicious == before.num_malicious
    assert_near(after.update, before.update.astype(np.float64) * factor, scaled, factor=2)


@pytest.mark.parametrize("dimension", [1, 7, 1025, 20_000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_identical_clients_get_identical_scores(dtype, dimension):
    for clients in (7, 8, 9, 10, 14):
        rng = np.random.default_rng(clients)
        cohort = make_round(clients, clients, dimension, dtype)
        twins = rng.permutation(clients)[:3]
        cohort.updates[twins] = cohort.updates[twins[0]]
        cohort.quantities[twins] = cohort.quantities[twins[0]]
        for name in SCORED:
            verdict = fedra.make_rule(name)(cohort.updates, cohort.quantities)
            assert len(set(verdict.scores[twins])) == 1, (name, clients)


FAULTS = ("nan", "infinite", "longer", "shorter", "integers", "object", "no quantity", "zero quantity", "text quantity")


def spoil(fault, update, quantity):
    if fault == "nan":
        update = update.copy()
        update[-1] = np.nan
    elif fault == "infinite":
        update = np.full_like(update, -np.inf)
    elif fault == "longer":
        update = np.append(update, update[:1])
    elif fault == "shorter":
        update = update[:-1]
    elif fault == "integers":
        update = np.ones(len(update), dtype=int)
    elif fault == "object":
        update = object()
    else:
        quantity = {"no quantity": None, "zero quantity": 0, "text quantity": "5"}[fault]
    return update, quantity


@every_rule
@given(
    rounds(least_clients=9, most_dimension=60),
    st.lists(st.tuples(st.sampled_from(FAULTS), st.integers(0, 20)), min_size=1, max_size=6),
)
def test_screened_out_clients_change_nothing_for_the_rest(name, cohort, faults):
    updates, quantities = list(cohort.updates), cohort.quantities.tolist()
    good = [True] * len(cohort)
    for fault, place in faults:
        place = min(place, len(updates))
        update, quantity = spoil(fault, cohort.updates[0], 3.0)
        updates.insert(place, update)
        quantities.insert(place, quantity)
        good.insert(place, False)
    rule = steady_rule(name)
    alone, mixed = rule(cohort.updates, cohort.quantities), rule(updates, quantities)
    good = np.array(good)
    assert mixed.update.tobytes() == alone.update.tobytes()
    np.testing.assert_array_equal(mixed.kept[good], alone.kept)
    assert not mixed.kept[~good].any()
    assert [reason for reason, fine in zip(mixed.reasons, good, strict=True) if fine] == list(alone.reasons)
    assert all(reason for reason, fine in zip(mixed.reasons, good, strict=True) if not fine)
    assert mixed.num_malicious == alone.num_malicious
    assert mixed.cut == alone.cut
    for field, absent in (("weights", 0.0), ("scores", np.nan), ("implied_quantities", np.nan)):
        full, part = getattr(mixed, field), getattr(alone, field)
        assert (full is None) == (part is None)
        if full is not None:
            np.testing.assert_array_equal(full[good], part)
            np.testing.assert_array_equal(full[~good], np.full((~good).sum(), absent))


@every_rule
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_number_of_threads_does_not_change_a_bit(name, dtype):
    cohort = make_round(11, 11, 50_001, dtype, liars=1)
    rule = steady_rule(name)
    one = rule(cohort.updates, cohort.quantities, threads=1)
    for threads in (2, 3, None):
        assert_same_verdict(rule(cohort.updates, cohort.quantities, threads=threads), one)


@every_rule
@given(rounds(least_clients=8))
def test_the_verdict_holds_together(name, cohort):
    verdict = steady_rule(name)(cohort.updates, cohort.quantities)
    assert verdict.rule == name
    assert verdict.note == ""
    assert np.isfinite(verdict.update).all()
    assert verdict.update.shape == (cohort.updates.shape[1],)
    assert [reason == "" for reason in verdict.reasons] == verdict.kept.tolist()
    if verdict.weights is not None:
        assert verdict.weights.sum() == pytest.approx(1, abs=1e-12)
        assert (verdict.weights >= 0).all()
        assert (verdict.weights[~verdict.kept] == 0).all()
    if verdict.scores is not None:
        assert verdict.scores[verdict.kept].max() == verdict.cut
        assert (verdict.scores[~verdict.kept] >= verdict.cut).all()


@pytest.mark.parametrize("name", [name for name in RULE_NAMES if name != "norm-bound"])
@given(rounds(least_clients=8))
def test_the_result_lies_within_the_kept_clients(name, cohort):
    verdict = steady_rule(name)(cohort.updates, cohort.quantities)
    kept = cohort.updates[verdict.kept].astype(np.float64)
    if name == "centered-clipping":  # its first centre, zero, is one of them
        kept = np.vstack([kept, np.zeros(kept.shape[1])])
    slack = np.abs(kept).max() * (1e-7 if cohort.updates.dtype == np.float32 else 1e-14)
    assert (verdict.update >= kept.min(axis=0) - slack).all()
    assert (verdict.update <= kept.max(axis=0) + slack).all()


@every_rule
def test_a_rule_is_frozen_and_compares_by_its_parameters(name):
    rule = fedra.make_rule(name)
    assert rule == fedra.make_rule(name)
    with pytest.raises(AttributeError):
        rule.name = "other"
    assert isinstance(rule.family, fedra.Family)
