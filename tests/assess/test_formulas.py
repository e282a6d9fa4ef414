"""What is stated of each rule."""

from __future__ import annotations

import pytest

from fedra.assess import Federation, stated
from fedra.rules import RULES, Concord, FedRA, Preceded, make_preaggregator, make_rule
from fedra.rules.evidence import most_liars
from fedra.rules.malicious import AssumesMalicious


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("sampled", [3, 8, 50])
def test_formulas_are_the_rules_own(name: str, sampled: int) -> None:
    rule = Federation.of(num_clients=100, num_sampled=sampled).told(make_rule(name))
    formula = stated(rule, sampled)
    assert formula.condition
    if isinstance(rule, AssumesMalicious):
        assert formula.condition == rule.condition
        assert formula.most == max(0, rule.most_malicious(sampled))
        if isinstance(rule, Concord | FedRA):
            assert formula.assumed == max(0, most_liars(sampled, rule.malicious_ratio))
        else:
            assert formula.assumed == rule.assumed_malicious(sampled)
    else:
        assert formula.assumed is None


@pytest.mark.parametrize(
    ("rule", "most"),
    [
        (make_rule("fedavg"), 0),
        (make_rule("uniform"), 0),
        (make_rule("median"), 4),
        (make_rule("rfa"), 0),
        (make_rule("rfa", weights="equal"), 4),
        (make_rule("rfa", weights="verified"), most_liars(10, 0.1)),
        (make_rule("truncate"), None),
        (FedRA.as_printed(), 3),
        (Preceded(rule=make_rule("median"), before=make_preaggregator("nnm")), 4),
    ],
)
def test_rules_without_a_number(rule: object, most: int | None) -> None:
    assert stated(rule, 10).most == most  # type: ignore[arg-type]
