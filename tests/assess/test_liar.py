"""What one liar gets: the rules' own words."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedra.assess import Federation, HonestRound, SyntheticRounds, one_liar
from fedra.assess.liar import LARGEST_CLAIM
from fedra.rules import RULES, FedAvg, Median, make_rule
from fedra.rules.base import Rule, StatefulRule


@pytest.fixture
def rounds() -> list[HonestRound]:
    made = SyntheticRounds(federation=Federation.of([5200, 4100, 900, 800, 700, 300, 120, 60]), seed=3)
    return [made.round(number) for number in (0, 1)]


def asked(rule: Rule, round_: HonestRound, claim: float) -> float:
    honest = round_.first(len(round_) - 1)
    updates = np.vstack([honest.updates, (-honest.mean).astype(np.float32)])
    weights = rule(updates, np.append(honest.quantities, claim)).weights
    assert weights is not None
    return float(weights[-1])


def test_fedavg_believes_all(rounds: list[HonestRound]) -> None:
    found = one_liar(FedAvg(), rounds, [None, None])
    total = min(round_.quantities[:-1].sum() for round_ in rounds)
    assert math.isclose(found.claims["billion"].share, LARGEST_CLAIM / (LARGEST_CLAIM + total))
    assert math.isclose(found.claims["all"].share, 0.5)
    assert found.best.claim == LARGEST_CLAIM
    assert not found.by_pull


@pytest.mark.parametrize("name", ["fedra", "multi-krum", "rfa", "concord"])
def test_shares_are_what_the_rule_says(name: str, rounds: list[HonestRound]) -> None:
    rule = make_rule(name)
    found = one_liar(rule, rounds, [None, None])
    for named, claims in {
        "median": [float(np.median(round_.quantities[:-1])) for round_ in rounds],
        "largest": [float(round_.quantities[:-1].max()) for round_ in rounds],
    }.items():
        wanted = max(asked(rule, round_, claim) for round_, claim in zip(rounds, claims, strict=True))
        assert found.claims[named].share == wanted
    assert found.best.share == max(asked(rule, round_, found.best.claim) for round_ in rounds)
    assert found.best.share >= max(claim.share for claim in found.claims.values())


def test_without_weights_it_is_how_far_the_result_moves(rounds: list[HonestRound]) -> None:
    found = one_liar(Median(), rounds[:1], [None])
    honest = rounds[0].first(7)
    liar = (-honest.mean).astype(np.float32)
    before = Median()(honest.updates, honest.quantities).update.astype(float)
    after = Median()(np.vstack([honest.updates, liar]), np.append(honest.quantities, 1)).update.astype(float)
    way = liar - before
    assert math.isclose(found.best.share, (after - before) @ way / (way @ way), rel_tol=1e-9)
    assert found.by_pull
    assert found.any_claim


@pytest.mark.parametrize("name", RULES)
def test_every_rule_can_be_asked(name: str, rounds: list[HonestRound]) -> None:
    rule = make_rule(name)
    state = rule.init(rounds[0].updates.shape[1]) if isinstance(rule, StatefulRule) else None
    found = one_liar(rule, rounds, [state, state])
    assert all(0 <= claim.share <= 1 for claim in (*found.claims.values(), found.best))
