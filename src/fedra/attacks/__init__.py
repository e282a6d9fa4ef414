"""Attacks: an update attack times a quantity attack. To add an update attack: one class, and one line in ATTACKS."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from functools import partial
from typing import Any, get_args

from fedra import checks
from fedra.attacks.adaptive import Adaptive
from fedra.attacks.backdoor import Backdoor
from fedra.attacks.base import (
    AttackState,
    Sent,
    StatefulAttack,
    TargetedAttack,
    UpdateAttack,
    initial_attack_state,
)
from fedra.attacks.consistent import Consistent
from fedra.attacks.decoys import Decoys
from fedra.attacks.hiding import MinMax, MinSum
from fedra.attacks.mimic import Mimic
from fedra.attacks.noise import Gaussian
from fedra.attacks.opposing import IPM, SignFlip
from fedra.attacks.quantities import (
    QUANTITY_ATTACKS,
    QuantityAttack,
    claimed_by_malicious,
    make_quantity_attack,
    quantity_attack_name,
)
from fedra.attacks.updates import LIE, LabelFlip, NoAttack, Optimize
from fedra.attacks.view import VIEWS, AttackerView, InformedView, Knowledge, Matrix, Reading, WhiteBoxView
from fedra.names import import_own, nearest, parameters_of

# An attack that remembers takes and returns its state as well: see StatefulAttack.
Attack = Callable[..., Any]

ATTACKS: dict[str, type[UpdateAttack]] = {
    "none": NoAttack,
    "label-flip": LabelFlip,
    "lie": LIE,
    "optimize": Optimize,
    "sign-flip": SignFlip,
    "gaussian": Gaussian,
    "ipm": IPM,
    "mimic": Mimic,
    "min-max": MinMax,
    "min-sum": MinSum,
    "consistent": Consistent,
    "backdoor": Backdoor,
    "decoys": Decoys,
    "adaptive": Adaptive,
}

__all__ = [
    "ATTACKS",
    "IPM",
    "LIE",
    "QUANTITY_ATTACKS",
    "VIEWS",
    "Adaptive",
    "Attack",
    "AttackState",
    "AttackerView",
    "Backdoor",
    "Consistent",
    "Decoys",
    "Gaussian",
    "InformedView",
    "Knowledge",
    "LabelFlip",
    "Matrix",
    "Mimic",
    "MinMax",
    "MinSum",
    "NoAttack",
    "Optimize",
    "QuantityAttack",
    "Reading",
    "Sent",
    "SignFlip",
    "StatefulAttack",
    "TargetedAttack",
    "UpdateAttack",
    "WhiteBoxView",
    "attack_parameters",
    "claimed_by_malicious",
    "initial_attack_state",
    "knowledge_of",
    "make_attack",
    "make_quantity_attack",
    "make_registered",
    "named_parameters",
    "quantity_attack_name",
    "readings_of",
]


def attack_parameters(name: str) -> dict[str, Any]:
    """Return the parameters that a registered attack takes, with their defaults."""
    return {
        field.name: field.default if field.default_factory is MISSING else field.default_factory()
        for field in fields(_registered(name))  # type: ignore[arg-type]
    }


def named_parameters(name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of an attack, defaults written out, without what leaves it as it was before there was it.

    A parameter that came later has that value in its metadata, as `later`, so that the names of earlier runs stay.
    """
    if name not in ATTACKS:
        return dict(parameters)
    later = {
        field.name: field.metadata["later"]
        for field in fields(ATTACKS[name])  # type: ignore[arg-type]
        if "later" in field.metadata
    }
    given = {**attack_parameters(name), **parameters}
    return {key: value for key, value in given.items() if key not in later or later[key] != value}


def knowledge_of(attack: Attack) -> Knowledge:
    """Return what an attack must see; a function states it as an attribute `knowledge`, and else sees its own."""
    return checks.choice("knowledge", _stated(attack, "knowledge", "own"), VIEWS)


def readings_of(attack: Attack) -> set[Reading]:
    """Return which honest gradients of its own clients an attack says that it reads, "own" and "pool"; at the least."""
    reads: set[Reading] = {checks.choice("reads", one, get_args(Reading)) for one in _stated(attack, "reads", ())}
    if "observed" in reads and knowledge_of(attack) == "own":
        reads.add("pool")
    return reads - {"observed"}


def _stated(attack: Attack, name: str, otherwise: Any) -> Any:
    return getattr(attack.func if isinstance(attack, partial) else attack, name, otherwise)


def make_attack(name: str, **parameters: Any) -> Attack:
    """Make an update attack by name, or from ``module:name``: an UpdateAttack class, or a function (view, rng, ...)."""
    if name not in ATTACKS and ":" in name:
        return _own(name, parameters)
    return make_registered(name, **parameters)


def make_registered(name: str, **parameters: Any) -> UpdateAttack:
    """Make an update attack by its registry name."""
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
