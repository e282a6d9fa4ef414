"""Attacks: an update attack times a quantity attack. To add an update attack: one class, and one line in ATTACKS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np

from fedra.attacks.quantities import claimed_by_malicious
from fedra.attacks.updates import LIE, Decoys, LabelFlip, NoAttack, Optimize, UpdateAttack
from fedra.attacks.view import AttackerView, Matrix
from fedra.names import import_own, nearest, parameters_of

Attack = Callable[[AttackerView, np.random.Generator], Matrix]

ATTACKS: dict[str, type[UpdateAttack]] = {
    "none": NoAttack,
    "label-flip": LabelFlip,
    "lie": LIE,
    "optimize": Optimize,
    "decoys": Decoys,
}

__all__ = [
    "ATTACKS",
    "LIE",
    "Attack",
    "AttackerView",
    "Decoys",
    "LabelFlip",
    "NoAttack",
    "Optimize",
    "UpdateAttack",
    "attack_parameters",
    "claimed_by_malicious",
    "make_attack",
]


def attack_parameters(name: str) -> dict[str, Any]:
    """Return the parameters that a registered attack takes, with their defaults."""
    return {field.name: field.default for field in fields(_registered(name))}  # type: ignore[arg-type]


def make_attack(name: str, **parameters: Any) -> Attack:
    """Make an update attack by name, or from ``module:name``: an UpdateAttack class, or a function (view, rng, ...)."""
    if name not in ATTACKS and ":" in name:
        return _own(name, parameters)
    attack = _registered(name)
    _check_names(name, parameters, attack_parameters(name))
    return attack(**parameters)


def _own(name: str, parameters: dict[str, Any]) -> Attack:
    found = import_own(name, "attack")
    valid = list(parameters_of(found))
    if isinstance(found, type) and issubclass(found, UpdateAttack):
        _check_names(name, parameters, valid)
        return found(**parameters)
    if isinstance(found, type) or len(valid) < 2 or valid[0] != "view":
        raise ValueError(
            f"attack {name!r} is neither a subclass of fedra.attacks.UpdateAttack nor a function (view, rng, ...) with "
            "these names"
        )
    _check_names(name, parameters, valid[2:])
    return partial(found, **parameters)


def _registered(name: str) -> type[UpdateAttack]:
    if name not in ATTACKS:
        raise ValueError(f"unknown attack {name!r}{nearest(name, ATTACKS)}; an own attack is given as module:name")
    return ATTACKS[name]


def _check_names(name: str, parameters: dict[str, Any], valid: Any) -> None:
    for parameter in parameters:
        if parameter not in valid:
            raise TypeError(f"attack {name!r} has no parameter {parameter!r}{nearest(parameter, valid)}")
