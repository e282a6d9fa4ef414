"""An assessment as plain values for JSON; docs/assess.md describes them."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from fedra.assess.assessment import Assessment, RuleFindings

SCHEMA = 1


def assessment_values(assessment: Assessment) -> dict[str, Any]:
    """Return all figures; `schema` is raised when a key changes its meaning or goes."""
    federation, colluders = assessment.federation, assessment.colluders
    return {
        "schema": SCHEMA,
        "federation": {
            "num_clients": federation.num_clients,
            "num_sampled": federation.num_sampled,
            "num_malicious": federation.num_malicious,
            "malicious_ratio": federation.malicious_ratio,
            "rounds": federation.rounds,
            "quantities": {
                "total": float(federation.quantities.sum()),
                "least": float(federation.quantities.min()),
                "largest": float(federation.quantities.max()),
                "known": federation.known,
            },
        },
        "settings": {
            "looked_at": assessment.looked_at,
            "searched_rounds": assessment.searched_rounds,
            "budget": assessment.budget,
            "seed": assessment.seed,
        },
        "colluders": {
            "expected": colluders.expected,
            "usual": colluders.usual,
            "most": colluders.most,
            "probabilities": colluders.probabilities.tolist(),
        },
        "rules": [_rule(each) for each in assessment.rules],
        "recommendation": _plain(assessment.advice),
        "assumptions": list(assessment.assumptions),
    }


def _plain(value: Any) -> Any:
    """Return dataclasses as dictionaries, with lists as JSON has them."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


def _rule(each: RuleFindings) -> dict[str, Any]:
    return {
        "label": each.label,
        "rule": each.rule,
        "refusal": each.refusal,
        "formula": _plain(each.formula),
        "liar": _plain(each.liar),
        "adaptive": _plain(each.standing),
        "outlook": _plain(each.outlook),
        "cost": _plain(each.cost),
    }
