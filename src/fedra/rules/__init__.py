"""Every aggregation rule by name. To add one: one file here, and one line in RULES."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from fedra.names import import_own, nearest
from fedra.rules.base import Decision, Family, Rule, StatefulRule, initial_state
from fedra.rules.caf import CAF
from fedra.rules.clipping import CenteredClipping
from fedra.rules.concord import Concord
from fedra.rules.coordinates import Median, TrimmedMean
from fedra.rules.ctma import CTMA
from fedra.rules.dnc import DnC
from fedra.rules.fedra import FedRA, quantity_robust_scores
from fedra.rules.geometric import RFA
from fedra.rules.huber import Huber
from fedra.rules.krum import Bulyan, Krum, MultiKrum
from fedra.rules.mcne import estimate_num_malicious
from fedra.rules.meamed import MeaMed
from fedra.rules.means import FedAvg, NormBound, Uniform
from fedra.rules.preaggregation import PREAGGREGATORS, Preaggregator, Preceded, make_preaggregator, parse_preaggregator
from fedra.rules.truncate import Truncate
from fedra.rules.weighted_median import WeightedMedian

RULES: dict[str, type[Rule]] = {
    "fedavg": FedAvg,
    "uniform": Uniform,
    "median": Median,
    "trimmed-mean": TrimmedMean,
    "meamed": MeaMed,
    "krum": Krum,
    "multi-krum": MultiKrum,
    "bulyan": Bulyan,
    "caf": CAF,
    "dnc": DnC,
    "norm-bound": NormBound,
    "rfa": RFA,
    "weighted-median": WeightedMedian,
    "ctma": CTMA,
    "huber": Huber,
    "centered-clipping": CenteredClipping,
    "truncate": Truncate,
    "fedra": FedRA,
    "concord": Concord,
}

# What a deployment is defended by unless it chooses; docs/choosing.md has the contest's figures behind it.
DEFAULT_RULE = "concord"

__all__ = [
    "CAF",
    "CTMA",
    "DEFAULT_RULE",
    "PREAGGREGATORS",
    "RFA",
    "RULES",
    "Bulyan",
    "CenteredClipping",
    "Concord",
    "Decision",
    "DnC",
    "Family",
    "FedAvg",
    "FedRA",
    "Huber",
    "Krum",
    "MeaMed",
    "Median",
    "MultiKrum",
    "NormBound",
    "Preaggregator",
    "Preceded",
    "Rule",
    "StatefulRule",
    "TrimmedMean",
    "Truncate",
    "Uniform",
    "WeightedMedian",
    "estimate_num_malicious",
    "initial_state",
    "make_preaggregator",
    "make_rule",
    "parse_preaggregator",
    "quantity_robust_scores",
    "rule_class",
    "rule_family",
    "rule_parameters",
]


def rule_class(name: str) -> type[Rule]:
    """Return the rule of this registry name, or the class at ``module:Class``."""
    if not isinstance(name, str):
        raise TypeError(f"rule name {name!r}; give one of {', '.join(RULES)}, or module:Class of an own rule")
    if name in RULES:
        return RULES[name]
    if ":" not in name:
        raise ValueError(f"unknown rule {name!r}{nearest(name, RULES)}; an own rule is given as module:Class")
    found = import_own(name, "rule")
    if not (isinstance(found, type) and issubclass(found, Rule)):
        raise ValueError(f"{name!r} is not a subclass of fedra.Rule; give module:Class of one")
    if not (is_dataclass(found) and hasattr(found, "name") and hasattr(found, "family")):
        raise ValueError(
            f"rule {name!r} is unfinished: make it a @dataclass(frozen=True, kw_only=True) with a `name` and a `family`"
        )
    return found


def rule_parameters(name: str) -> dict[str, Any]:
    """Return the parameters that a rule takes, with their defaults."""
    return {field.name: field.default for field in fields(rule_class(name))}  # type: ignore[arg-type]


def make_rule(name: str, *, before: str | Preaggregator | None = None, **parameters: Any) -> Rule:
    """Make a rule by its registry name; unknown names and parameters raise, and list the valid ones.

    Args:
        name: a name of `RULES`, or module:Class of an own rule.
        before: a pre-aggregator to stand before it, or its name with parameters: "nnm", "bucketing size=4".
        parameters: the rule's.
    """
    found = rule_class(name)
    valid = rule_parameters(name)
    for parameter in parameters:
        if parameter not in valid:
            raise TypeError(f"rule {name!r} has no parameter {parameter!r}{nearest(parameter, valid)}")
    rule = found(**parameters)
    if before is None:
        return rule
    if not isinstance(before, Preaggregator):
        kind, options = parse_preaggregator(before)
        before = make_preaggregator(kind, **options)
    return Preceded(rule=rule, before=before)


def rule_family(name: str, parameters: Mapping[str, Any], before: str | None = None) -> Family:
    """Return the family of a rule with these parameters, which may depend on them; the class's where they are wrong."""
    try:
        return make_rule(name, before=before, **parameters).family
    except (TypeError, ValueError):
        return rule_class(name).family
