"""A run's name: readable, and different for runs that can end differently."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, fields
from typing import Any

from fedra.attacks import ATTACKS, attack_parameters
from fedra.data import default_partition_seed
from fedra.simulation import SimulationConfig
from fedra.simulation.config import WITHOUT_EFFECT

_HASH_DIGITS = 10
_LONGEST_WORDS = 100


def resolved(config: SimulationConfig) -> dict[str, Any]:
    """Return all that a run's result depends on, with the defaults of rule, attack and data set written out.

    A default that changes with a later version thereby makes another run, and a default that is stated does not. An
    option of a rule that came later has in its metadata, as `later`, the value that leaves the rule as it was before,
    and counts only where it is another.
    """
    values = {key: value for key, value in config.to_dict().items() if key not in WITHOUT_EFFECT}
    seed = config.partition_seed
    defaults = attack_parameters(config.attack) if config.attack in ATTACKS else {}
    return {
        **values,
        "lr": config.learning_rate,
        "partition_seed": default_partition_seed(config.dataset, config.seed) if seed is None else seed,
        "rule_params": _rule_parameters(config.make_rule(num_clients=None)),
        "attack_params": {**defaults, **config.attack_params},
    }


def _rule_parameters(rule: Any) -> dict[str, Any]:
    same = {
        field.name
        for field in fields(rule)
        if "later" in field.metadata and field.metadata["later"] == getattr(rule, field.name)
    }
    return {name: value for name, value in asdict(rule).items() if name not in same}


def run_name(config: SimulationConfig) -> str:
    """Return a name for the run's folder: what it is in words, and a hash of what it is exactly."""
    text = json.dumps(resolved(config), sort_keys=True, default=repr)
    digest = hashlib.sha256(text.encode()).hexdigest()[:_HASH_DIGITS]
    parts = [config.dataset, config.partition, config.setting, config.rule, config.attack]
    if config.alpha_q is not None:
        parts.append(f"q{config.alpha_q:g}")
    words = re.sub(r"[^A-Za-z0-9.-]+", ".", "-".join([*parts, f"seed{config.seed}"]))
    return f"{words[:_LONGEST_WORDS]}-{digest}"
