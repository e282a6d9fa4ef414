"""The search for the worst case: its geometry, its promises, and that no registered attack is worse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.attacks.test_suite import informed
from tests.reference import attacks as reference

from fedra import make_rule
from fedra.attacks import ATTACKS, Sent, StatefulAttack, WhiteBoxView
from fedra.cohort import shares
from fedra.redteam import CANDIDATE_NUMBERS, Candidate, Judgement, WorstCase, harm, largest_passing_claim, worst_case
from fedra.rules.base import Rule, initial_state

HONEST, MALICIOUS, DIMENSION = 20, 4, 60
RULES = ("fedavg", "fedra", "median", "trimmed-mean", "krum", "multi-krum", "truncate", "rfa", "centered-clipping")


def round_of(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A truth, and clients around it by how much they have."""
    draw = np.random.default_rng(seed)
    quantities = np.ceil(draw.lognormal(3, 1, HONEST))
    truth = draw.normal(size=DIMENSION)
    noise = draw.normal(size=(HONEST, DIMENSION)) * 8 / np.sqrt(quantities)[:, None]
    return (truth + noise).astype(np.float32), quantities


def remembered(rule: Rule, updates: np.ndarray, quantities: np.ndarray) -> Any:
    if initial_state(rule, DIMENSION) is None:
        return None
    return rule(updates, quantities, state=initial_state(rule, DIMENSION)).state


def judge_of(rule: Rule, updates: np.ndarray, quantities: np.ndarray, state: Any) -> Any:
    def judge(sent: np.ndarray, claims: np.ndarray) -> Judgement:
        verdict = rule([*updates, *sent], np.concatenate([quantities, claims]), state=state, threads=1)
        return Judgement.of(verdict, np.arange(HONEST, HONEST + MALICIOUS))

    return judge


def found(rule: str, seed: int = 0, **given: Any) -> WorstCase:
    updates, quantities = round_of(seed)
    made = make_rule(rule)
    state = remembered(made, updates, quantities)
    return worst_case(made, updates, quantities, MALICIOUS, state=state, threads=1, **given)


@pytest.mark.parametrize("rule", RULES)
def test_what_is_reported_is_what_the_rule_makes_of_what_is_sent(rule: str) -> None:
    updates, quantities = round_of(0)
    made = make_rule(rule)
    state = remembered(made, updates, quantities)
    worst = found(rule, budget=40)
    verdict = made([*updates, *worst.updates], np.concatenate([quantities, worst.claims]), state=state)
    np.testing.assert_array_equal(verdict.update, worst.aggregate)
    mean = shares(quantities) @ updates.astype(np.float64)
    aggregate = np.asarray(verdict.update, dtype=np.float64)
    assert worst.cosine == pytest.approx(
        float(aggregate @ mean) / np.linalg.norm(aggregate) / np.linalg.norm(mean), abs=1e-5
    )
    assert worst.distance == pytest.approx(np.linalg.norm(aggregate - mean), rel=1e-4)
    if verdict.weights is not None:
        assert worst.weight == pytest.approx(verdict.weights[HONEST:].sum())
    assert worst.harm == max(trial.harm for trial in worst.tried)


def test_a_seed_gives_the_same_answer_and_the_budget_is_kept() -> None:
    calls: list[tuple[int, int]] = []
    first, again = (
        found("median", budget=30, seed=3, progress=lambda *done: calls.append(done)),
        found("median", budget=30, seed=3),
    )
    np.testing.assert_array_equal(first.updates, again.updates)
    assert first.tried == again.tried
    assert calls == [(number, 30) for number in range(1, 31)]
    assert found("median", budget=1).harm <= first.harm


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", [0, 1, 5])
def test_no_registered_attack_is_worse(rule: str, seed: int) -> None:
    updates, quantities = round_of(seed)
    made = make_rule(rule)
    state = remembered(made, updates, quantities)
    judge = judge_of(made, updates, quantities, state)
    mean = shares(quantities) @ updates.astype(np.float64)
    worst = found(rule, seed)
    own, _ = round_of(100 + seed)
    own = (own - own.mean(axis=0) + updates.mean(axis=0)).astype(np.float32)
    seen = WhiteBoxView(
        **{
            **vars(informed(updates)),
            "weights": np.ones(DIMENSION, dtype=np.float32),
            "num_sampled": HONEST + MALICIOUS,
            "num_malicious": MALICIOUS,
            "own": lambda: own[:MALICIOUS],
            "pool": lambda: own,
            "relabelled": lambda relabel: -own[:MALICIOUS],
            "poisoned": lambda poison: own[:MALICIOUS] + 1,
            "honest_claims": quantities,
        },
        rule=made,
        rule_state=state,
        judge=judge,
    )
    for name, attack in ATTACKS.items():
        if name == "adaptive":
            continue  # The same search, with a seed of its own.
        options = [{}, {"knowledge": "all"}] if name in ("ipm", "min-max", "min-sum") else [{}]
        options += [{"eps": 10.0}] if name == "ipm" else []
        for parameters in options:
            instance: Any = attack(**parameters)
            if isinstance(instance, StatefulAttack):
                sent, _ = instance(seen, np.random.default_rng(0), {**instance.init(DIMENSION)})
            else:
                sent = instance(seen, np.random.default_rng(0))
            given = sent if isinstance(sent, Sent) else Sent(updates=sent)
            rows = np.broadcast_to(given.updates, (MALICIOUS, DIMENSION)).astype(np.float32)
            passing = largest_passing_claim(judge, rows)
            for claim in (1.0, np.median(quantities), quantities.mean() + 10 * quantities.std(), passing or 1.0):
                claims = np.full(MALICIOUS, float(claim)) if given.claims is None else given.claims
                reached = harm(judge(rows, claims).update, mean).harm
                assert worst.harm >= reached - 1e-9, (name, parameters, claim, reached)


def test_the_harm_of_an_aggregate() -> None:
    mean = np.array([2.0, 0.0])
    assert harm(mean, mean).harm == 0
    assert harm(None, mean).cosine == 0
    turned = harm(np.array([-2.0, 0.0]), mean)
    assert (turned.cosine, turned.distance) == (-1, 4)
    assert turned.harm == pytest.approx(2 + 0.1 * 2 / 3)
    assert harm(np.array([-200.0, 0.0]), mean).harm > turned.harm > harm(np.array([0.0, 9.0]), mean).harm


@pytest.mark.parametrize("limit", [1.0, 3.7, 512.0, 1e8])
def test_the_largest_claim_that_passes(limit: float) -> None:
    def judge(sent: np.ndarray, claims: np.ndarray) -> Judgement:
        return Judgement(update=None, kept=np.array([False, claims[1] <= limit]), weights=None)

    found = largest_passing_claim(judge, np.zeros((2, 1)))
    assert found is not None
    assert found <= limit
    assert found == pytest.approx(reference.largest_claim(lambda claim: claim <= limit, 1e9), rel=0.02)


def test_nobody_passes_and_everybody_passes() -> None:
    def judge(kept: bool) -> Any:
        return lambda sent, claims: Judgement(update=None, kept=np.array([kept]), weights=None)

    assert largest_passing_claim(judge(False), np.zeros((1, 1))) is None
    assert largest_passing_claim(judge(True), np.zeros((1, 1))) == 1e9


def test_a_candidate_survives_as_numbers_and_senseless_ones_are_put_right() -> None:
    candidate = Candidate(base=0, direction=3, other=5, blend=0.25, length=2.5, jitter=0.1, claim=9.0, decoys=2)
    assert Candidate.from_numbers(candidate.as_numbers()) == candidate
    wild = Candidate.from_numbers(np.full(CANDIDATE_NUMBERS, 1e9))
    assert (wild.base, wild.direction, wild.blend) == (1, 8, 1.0)
    assert Candidate.from_numbers(np.full(CANDIDATE_NUMBERS, -5.0)).claim == 1.0


def test_wrong_calls_say_what_to_do() -> None:
    updates, quantities = round_of(0)
    with pytest.raises(ValueError, match="20 updates and 19 quantities"):
        worst_case(make_rule("median"), updates, quantities[1:], 2)
    with pytest.raises(ValueError, match="num_malicious=0"):
        worst_case(make_rule("median"), updates, quantities, 0)
    with pytest.raises(ValueError, match="budget=0"):
        worst_case(make_rule("median"), updates, quantities, 2, budget=0)
    with pytest.raises(ValueError, match="20 updates and 1 quantities"):
        worst_case(make_rule("median"), updates, None, 2)
    with pytest.raises(ValueError, match=r"shape \(20, 1\); give n numbers"):
        worst_case(make_rule("median"), updates, quantities[:, None], 2)
    with pytest.raises(TypeError, match="seed='a'"):
        worst_case(make_rule("median"), updates, quantities, 2, seed="a")  # type: ignore[arg-type]


@pytest.mark.parametrize("quantity", [np.nan, -3.0, 0.0, 0.5, 1e17])
def test_a_client_whose_quantity_the_rule_would_not_take_is_named(quantity: float) -> None:
    updates, quantities = round_of(0)
    quantities[3] = quantity
    with pytest.raises(ValueError, match="client 3 is not usable: quantity is"):
        worst_case(make_rule("median"), updates, quantities, 2, budget=5)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_client_whose_update_the_rule_would_not_take_is_named(value: float) -> None:
    updates, quantities = round_of(0)
    updates[3, 5] = value
    with pytest.raises(ValueError, match="client 3 is not usable: update holds values that are not finite"):
        worst_case(make_rule("median"), updates, quantities, 2, budget=5)
