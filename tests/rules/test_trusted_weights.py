"""What rules believe of claims: the four ways, the family that follows, and what a federation changes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import reference
from tests.comparing import assert_near, assert_same_verdict
from tests.strategies import RULE_NAMES, make_round, rounds

import fedra
from fedra.rules.evidence import LEFT_OUT
from fedra.rules.trusted_weights import WEIGHTS, TrustedWeights, believed_quantities
from fedra.screening import screen

WEIGHING = [name for name in RULE_NAMES if issubclass(fedra.RULES[name], TrustedWeights)]
RATIOS = st.sampled_from(["0", "0.1", "0.25", "0.4"])


def cohort_of(made):
    return screen(made.updates, made.quantities).cohort


def clear(made, ratio):
    """Whether no claim lies within rounding of being left out."""
    excess = reference.evidence(made.updates, made.quantities, ratio)[1]
    return not (np.abs(excess / LEFT_OUT - 1) < 1e-6).any()


def test_the_rules_that_weigh():
    assert WEIGHING == ["rfa", "weighted-median", "ctma", "huber", "centered-clipping"]


@given(rounds(most_dimension=30), RATIOS, st.sampled_from(["claims", "capped", "equal"]))
def test_each_way_is_its_formula(made, ratio, weights):
    found = believed_quantities(cohort_of(made), weights, float(ratio))
    np.testing.assert_array_equal(found, reference.believed(made.updates, made.quantities, weights, ratio))


@settings(max_examples=40)
@given(rounds(least_clients=5, most_clients=14, most_dimension=30, dtypes=st.just(np.float64)), RATIOS)
def test_verified_is_what_the_evidence_counts(made, ratio):
    if not clear(made, ratio):
        return
    found = believed_quantities(cohort_of(made), "verified", float(ratio))
    expected = reference.believed(made.updates, made.quantities, "verified", ratio)
    np.testing.assert_allclose(found / found.max(), expected / expected.max(), rtol=1e-4, atol=1e-9)


def test_verified_weights_are_those_of_fedra():
    made = make_round(3, 30, 80, liars=4)
    fedra_weights = fedra.FedRA()(made.updates, made.quantities).weights
    found = believed_quantities(cohort_of(made), "verified")
    np.testing.assert_array_equal(found / found.max() / (found / found.max()).sum(), fedra_weights)


@pytest.mark.parametrize("name", WEIGHING)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_the_family_follows_from_the_weights(name, weights):
    rule = fedra.make_rule(name, weights=weights)
    assert rule.family is WEIGHTS[weights]
    assert fedra.RULES[name].family is WEIGHTS[fedra.RULES[name]().weights]


@pytest.mark.parametrize("name", WEIGHING)
def test_equal_weights_look_at_no_claim(name):
    made = make_round(5, 12, 9, liars=2)
    rule = fedra.make_rule(name, weights="equal")
    assert_same_verdict(rule(made.updates, made.quantities), rule(made.updates, np.ones(12)))


@pytest.mark.parametrize("name", WEIGHING)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_a_huge_claim_captures_only_a_rule_that_believes_it(name, weights):
    rng = np.random.default_rng(0)
    updates = rng.standard_normal((30, 40))
    updates[0] = 50.0
    quantities = rng.integers(5, 50, 30).astype(float)
    quantities[0] = 2.0**53
    rule = fedra.make_rule(name, weights=weights)
    state = None
    for _ in range(3):
        verdict = rule(updates, quantities, state=state)
        state = verdict.state
    from_others, from_liar = (np.linalg.norm(verdict.update - one) for one in (updates[1:].mean(axis=0), updates[0]))
    assert (from_others < from_liar) == (weights != "claims")


@pytest.mark.parametrize("name", WEIGHING)
def test_who_proves_nothing_has_no_part(name):
    rng = np.random.default_rng(1)
    updates = rng.standard_normal((20, 300))
    updates[3] = 1e6
    rule = fedra.make_rule(name, weights="verified")
    verdict = rule(updates, np.full(20, 10.0))
    assert not verdict.kept[3]
    counted = believed_quantities(screen(updates, np.full(20, 10.0)).cohort, "verified")
    assert counted[3] == 0
    others = np.arange(20) != 3
    sent = updates.copy()
    sent[3] = -1e9
    np.testing.assert_array_equal(rule(sent, np.full(20, 10.0)).kept[others], verdict.kept[others])


@pytest.mark.parametrize("weights", WEIGHTS)
@given(rounds(least_clients=5))
def test_rfa_weighs_by_what_it_believes(weights, made):
    believed = believed_quantities(cohort_of(made), weights)
    verdict = fedra.RFA(weights=weights)(made.updates, made.quantities)
    assert_near(verdict.update, reference.rfa(made.updates, believed), made.updates)


@pytest.mark.parametrize("weights", WEIGHTS)
@given(rounds(least_clients=5), st.sampled_from([None, 0.5]))
def test_centered_clipping_weighs_by_what_it_believes(weights, made, radius):
    believed = believed_quantities(cohort_of(made), weights)
    rule = fedra.CenteredClipping(weights=weights, radius=radius)
    verdict = rule(made.updates, made.quantities)
    expected = reference.centered_clipping(made.updates, radius=radius, weights=list(believed))
    assert_near(verdict.update, expected, made.updates, factor=4)


@pytest.mark.parametrize("name", WEIGHING)
def test_a_ratio_without_use_is_no_part_of_the_rule(name):
    stated = fedra.make_rule(name, malicious_ratio=0.3)
    if name == "ctma":
        assert stated != fedra.make_rule(name)
    else:
        assert stated == fedra.make_rule(name)
        assert stated.for_federation(malicious_ratio=0.2) is stated
    for weights in ("capped", "verified"):
        rule = fedra.make_rule(name, weights=weights)
        assert rule.assumed_ratio == 0.1
        assert rule.for_federation(malicious_ratio=0.2).assumed_ratio == 0.2
        assert rule.for_federation(num_clients=100) is rule


@pytest.mark.parametrize("name", WEIGHING)
def test_verified_claims_need_others_to_compare_with(name):
    rule = fedra.make_rule(name, weights="verified")
    with pytest.raises(ValueError, match=rf"{name} with weights='verified' needs n >= 3, but has n = 2; .*'capped'"):
        rule(np.eye(2), [1, 1])
    assert np.isfinite(rule(np.eye(3), [1, 2, 3]).update).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", WEIGHING)
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("value", [3.4e38, 1e-45, 0.0])
@pytest.mark.parametrize("claim", [1.0, 2.0**53])
def test_hostile_rounds_stay_finite(name, weights, value, claim):
    made = make_round(4, 20, 1500, np.float32, scale=1e-3)
    made.updates[:2] = value
    made.updates[1] *= -1
    made.quantities[:2] = claim
    for updates in (made.updates, np.zeros_like(made.updates), np.tile(made.updates[5], (20, 1))):
        verdict = fedra.make_rule(name, weights=weights)(updates, made.quantities)
        assert np.isfinite(verdict.update).all()
        if verdict.weights is not None:
            assert verdict.weights.sum() == pytest.approx(1)
            assert (verdict.weights[~verdict.kept] == 0).all()


@pytest.mark.parametrize("name", WEIGHING)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_any_number_of_threads_gives_the_same_bits(name, weights):
    made = make_round(7, 11, 50_001, np.float32, liars=1)
    rule = fedra.make_rule(name, weights=weights)
    one = rule(made.updates, made.quantities, threads=1)
    assert_same_verdict(rule(made.updates, made.quantities, threads=3), one)


def test_unknown_weights_are_refused():
    with pytest.raises(ValueError, match=r"weights='claim'; .*claims"):
        fedra.RFA(weights="claim")
    with pytest.raises(ValueError, match=r"malicious_ratio=0\.5"):
        fedra.RFA(weights="capped", malicious_ratio=0.5)
