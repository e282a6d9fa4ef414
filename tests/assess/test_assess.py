"""The whole assessment: every rule, the same answer for the same seed, figures of the parts."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np
import pytest
from tests.assess.samples import SILOS

from fedra.assess import (
    Federation,
    RealRounds,
    SyntheticRounds,
    assess,
    assessment_text,
    assessment_values,
    clean_cost,
    one_liar,
    standing,
    stated,
)
from fedra.cohort import Cohort
from fedra.rules import RULES, Decision, Family, Rule, make_rule


def test_figures_are_those_of_the_functions() -> None:
    federation = Federation.of(SILOS, num_malicious=1)
    found = assess(federation, ["multi-krum"], budget=6, seed=2)
    assert [each.label for each in found.rules] == ["fedavg", "multi-krum"]
    rounds = SyntheticRounds(federation=federation, seed=2)
    made = [rounds.round(number) for number in range(20)]
    for each in found.rules:
        rule = federation.told(make_rule(each.rule))
        assert each.formula == stated(rule, 8)
        assert each.liar == one_liar(rule, made[:2], [None, None])
        assert each.standing == standing(rule, made[:2], [None, None], budget=6, seed=2)
        assert each.cost == clean_cost(rule, made, None)
        assert each.outlook is not None
        assert each.outlook.stands == each.standing.stands  # type: ignore[union-attr]
        assert each.outlook.ever == found.colluders.ever_more_than(each.outlook.stands)


def test_every_rule_is_assessed_and_values_are_json() -> None:
    told: list[tuple[str, float]] = []
    federation = Federation.of(num_clients=12, num_malicious=1)
    rounds = SyntheticRounds(federation=federation, dimension=10)
    found = assess(federation, list(RULES), rounds=rounds, budget=2, progress=lambda *step: told.append(step))
    assert [each.label for each in found.rules] == list(RULES)
    assert not any(each.refusal for each in found.rules)
    values = json.loads(json.dumps(assessment_values(found), allow_nan=False))
    assert values["rules"][0]["liar"]["best"] == asdict(found.rules[0].liar.best)  # type: ignore[union-attr]
    shares = [share for _, share in told]
    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_the_same_seed_gives_the_same_answer_and_another_one_another() -> None:
    federation = Federation.of(num_clients=40, num_sampled=10)
    first, again, other = (
        json.dumps(assessment_values(assess(federation, ["fedra"], budget=5, seed=seed))) for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


def test_rules_that_refuse_so_few_clients_say_why() -> None:
    found = assess(Federation.of([5, 6, 7, 8]), ["bulyan", "median"], budget=3)
    refused = found.rules[1]
    assert "bulyan needs n >= 4m+3" in refused.refusal
    assert (refused.liar, refused.standing, refused.outlook, refused.cost) == (None, None, None, None)
    assert "refused" in assessment_text(found)


def test_large_rounds_are_looked_at_in_proportion() -> None:
    federation = Federation.of(num_clients=100_000, num_sampled=1000)
    rounds = SyntheticRounds(federation=federation, dimension=4)
    found = assess(federation, {"mean": make_rule("uniform")}, rounds=rounds, budget=1)
    assert found.looked_at == 100
    assert "scaled to rounds of 1,000" in found.assumptions[-1]
    for each in found.rules:
        assert each.standing is not None
        assert each.outlook is not None
        assert each.outlook.stands == 10 * each.standing.stands
        if each.standing.turned_at is not None:
            assert each.outlook.turned_at == each.outlook.stands + 1


@dataclass(frozen=True, kw_only=True)
class Silent(Rule):
    """Never makes a step."""

    name: ClassVar[str] = "silent"
    family: ClassVar[Family] = Family.IGNORANT

    def decide(self, cohort: Cohort) -> Decision:
        return Decision(note="never")


@pytest.mark.parametrize("sampled", [8, 300])
def test_a_rule_that_makes_no_step_stands_nobody(sampled: int) -> None:
    federation = Federation.of(num_clients=300, num_sampled=sampled, malicious_ratio=0.1)
    rounds = SyntheticRounds(federation=federation, dimension=5)
    found = assess(federation, {"silent": Silent()}, rounds=rounds, budget=1)
    outlook = found.rules[1].outlook
    assert outlook is not None
    assert (outlook.stands, outlook.stopped_at, outlook.chance, outlook.ever) == (0, 0, 1.0, 1.0)
    assert found.rules[1].cost.without_update == 1  # type: ignore[union-attr]
    quiet = assess(Federation.of(num_clients=8, num_malicious=0), {"silent": Silent()}, budget=1)
    assert quiet.advice.rule == "fedavg"
    assert "has rounds without a step where nobody attacks" in quiet.advice.others[0]


def test_real_updates_have_no_truth() -> None:
    rng = np.random.default_rng(1)
    real = RealRounds(updates=0.1 + rng.normal(size=(6, 15)) / 9, quantities=np.full(6, 81.0))
    found = assess(Federation.of(real.quantities), ["median"], rounds=real, budget=4)
    costs = [each.cost for each in found.rules]
    assert all(cost is not None and cost.error is None and cost.rounds == 1 for cost in costs)
    assert any("6 files" in sentence for sentence in found.assumptions)
    assert found.advice.rule is not None


@pytest.mark.parametrize("parameters", [{"budget": 0}, {"seed": -1}])
def test_caller_mistakes(parameters: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="give a whole number"):
        assess(Federation.of(num_clients=5), **parameters)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "settings", [{"signal": 0.0}, {"difference": -1.0}, {"dimension": 1}, {"signal": float("nan")}]
)
def test_settings_of_synthetic_rounds(settings: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(settings))):
        SyntheticRounds(federation=Federation.of(num_clients=5), **settings)  # type: ignore[arg-type]


def test_synthetic_rounds_are_what_they_say() -> None:
    federation = Federation.of(np.full(100, 25.0), num_sampled=100)
    round_ = SyntheticRounds(federation=federation, signal=0.3, difference=0.4, dimension=2000).round(0)
    assert round_.truth is not None
    assert np.linalg.norm(round_.truth) == pytest.approx(0.3)
    away = np.linalg.norm(round_.updates - round_.truth, axis=1)
    assert np.sqrt(np.mean(away**2)) == pytest.approx(np.sqrt(0.4**2 + 1 / 25), rel=0.02)
