"""The recommendation follows from the figures."""

from __future__ import annotations

from dataclasses import replace

from tests.assess.samples import federation, findings, refused

from fedra.assess import Colluders, RuleFindings
from fedra.assess.advice import advise


def advised(*rules: RuleFindings, **settings: object):
    described = federation(**settings)
    return advise(described, Colluders.of(described), rules)


def stopped(each: RuleFindings, at: int) -> RuleFindings:
    assert each.outlook is not None
    return replace(each, outlook=replace(each.outlook, stands=at - 1, stopped_at=at, ever=1.0))


PLAIN = findings("fedavg", (1.0, -1.0), error=1.0, ever=1.0)


def test_the_cheapest_that_stands_what_may_come() -> None:
    dear = findings("median", (1.0, 0.9, 0.8, 0.7), error=2.0)
    advice = advised(PLAIN, dear, findings("fedra", (1.0, 0.9, -1.0), error=1.3))
    assert (advice.rule, advice.enough, advice.headline) == ("fedra", True, "Use fedra.")
    assert advice.reasons[0] == "All clients take part in every round, so every round holds 1 attacker."
    assert advice.reasons[1] == "It stands 1 attacker that knows everything; 1 may come."
    assert advice.others[0].startswith("fedavg: turned by 1 attacker, error without attack 1.00 times")
    assert advice.others[1] == "median: stands 3 as well, error without attack 2.00 times FedAvg's."
    assert advised(PLAIN, dear, findings("fedra", (1.0, 0.9, -1.0), error=1.3), num_malicious=2).rule == "median"


def test_of_two_that_cost_the_same_the_one_that_stands_more() -> None:
    near = findings("concord", (1.0, 0.9, 0.8, 0.7), error=1.23)
    assert advised(PLAIN, findings("fedra", (1.0, 0.9, -1.0), error=1.2), near).rule == "concord"


def test_better_stopped_than_turned() -> None:
    held = stopped(findings("concord", (1.0, 0.9, 0.0, 0.0), error=1.1), 1)
    advice = advised(PLAIN, findings("fedra", (1.0, -1.0), error=1.0, ever=1.0), held)
    assert (advice.rule, advice.enough) == ("concord", False)
    assert "stop rounds, but not turn them" in advice.headline


def test_where_nothing_stands_the_least_exposed_is_named_as_that() -> None:
    near = findings("median", (1.0, 0.5, -1.0), error=2.0, ever=0.3)
    advice = advised(PLAIN, near, num_malicious=3)
    assert (advice.rule, advice.enough) == ("median", False)
    assert advice.headline == "No rule here stands what may come; median comes nearest."
    assert "30.0% of rounds hold enough to turn it" in advice.reasons[1]
    assert any("To be safer" in reason for reason in advice.reasons)


def test_refusals_are_repeated() -> None:
    advice = advised(PLAIN, refused("bulyan"), findings("fedra", (1.0, 0.9), error=1.0))
    assert "bulyan needs n >= 4m+3" in advice.others[1]
    alone = advised(refused("bulyan"))
    assert (alone.rule, alone.enough) == (None, False)
    assert "None of these rules takes rounds of 8 clients" in alone.headline


def test_where_nobody_is_taken_to_lie_that_is_said() -> None:
    advice = advised(PLAIN, findings("fedra", (1.0, 0.9), error=1.2), num_malicious=0)
    assert advice.rule == "fedavg"
    assert advice.reasons[0].startswith("You state that nobody lies")
