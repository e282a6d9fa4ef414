"""How many malicious clients a rule stands by what is stated of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fedra.rules import Concord, FedAvg, FedRA, Median, NormBound, Preceded, Rule, Uniform
from fedra.rules.evidence import most_liars
from fedra.rules.malicious import AssumesMalicious
from fedra.rules.trusted_weights import TrustedWeights


@dataclass(frozen=True, kw_only=True)
class Formula:
    """What is stated of a rule in rounds of n clients.

    Attributes:
        condition: in terms of n and m.
        assumed: how many malicious clients it allows for, as it is set up; None: it assumes no number.
        most: the largest number for which the condition holds; None: nothing is stated.
    """

    condition: str
    assumed: int | None
    most: int | None


def _none(num_sampled: int) -> int:
    return 0


def _minority(num_sampled: int) -> int:
    return (num_sampled - 1) // 2


# Of rules that assume no number.
_STATED: dict[type[Rule], tuple[str, Callable[[int], int]]] = {
    FedAvg: ("none: one claim decides", _none),
    Uniform: ("none: one update decides", _none),
    NormBound: ("none: one claim decides", _none),
    Median: ("n > 2m", _minority),
}
_UNKNOWN = "none is stated"


def stated(rule: Rule, num_sampled: int) -> Formula:
    """Return what is stated of a rule, as it is set up, in rounds of n clients."""
    if isinstance(rule, Preceded):
        return stated(rule.rule, num_sampled)
    if isinstance(rule, AssumesMalicious):
        return Formula(
            condition=rule.condition,
            assumed=_allowed(rule, num_sampled),
            most=max(0, rule.most_malicious(num_sampled)),
        )
    if isinstance(rule, TrustedWeights):
        return _of_weights(rule, num_sampled)
    condition, most = _STATED.get(type(rule), (_UNKNOWN, None))
    return Formula(condition=condition, assumed=None, most=None if most is None else most(num_sampled))


def _allowed(rule: AssumesMalicious, num_sampled: int) -> int:
    """Return m~, or the k that rules by evidence go by, which has two standard deviations more."""
    by_evidence = isinstance(rule, Concord) or (
        isinstance(rule, FedRA) and rule.setting == "dynamic" and rule.estimator == "evidence"
    )
    if not by_evidence:
        return rule.assumed_malicious(num_sampled)
    return max(0, most_liars(num_sampled, rule.malicious_ratio, rule.num_malicious))


def _of_weights(rule: TrustedWeights, num_sampled: int) -> Formula:
    condition = "less than half of the believed weight"
    if rule.weights == "claims":
        return Formula(condition=f"{condition}: one claim decides", assumed=None, most=0)
    if rule.weights == "equal":
        return Formula(condition="n > 2m", assumed=None, most=_minority(num_sampled))
    return Formula(condition=condition, assumed=None, most=most_liars(num_sampled, rule.assumed_ratio))
