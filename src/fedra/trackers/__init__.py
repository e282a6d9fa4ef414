"""Every tracker by name: tools that draw a run while it goes on. To add one: one file here, and one line in TRACKERS.

A tracker is an observer (`fedra.server.Observer`): give it to whatever runs rounds, `observers=[TensorBoard()]`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from fedra.names import import_own, nearest, parameters_of, parse_spec
from fedra.server.observers import Observer
from fedra.trackers.base import Session, Tracker
from fedra.trackers.mlflow import MLflow
from fedra.trackers.tensorboard import TensorBoard
from fedra.trackers.wandb import WandB

TRACKERS: dict[str, type[Observer]] = {
    "tensorboard": TensorBoard,
    "mlflow": MLflow,
    "wandb": WandB,
}

__all__ = [
    "TRACKERS",
    "MLflow",
    "Session",
    "TensorBoard",
    "Tracker",
    "WandB",
    "make_tracker",
    "make_trackers",
    "tracker_class",
    "tracker_parameters",
]

_FORM = 'for instance tensorboard, or "mlflow folder=DIR", or module:Class of your own'


def tracker_class(name: str) -> type[Observer]:
    """Return the tracker of this registry name, or the observer class at ``module:Class``."""
    if name in TRACKERS:
        return TRACKERS[name]
    if ":" not in name:
        raise ValueError(f"unknown tracker {name!r}{nearest(name, TRACKERS)}; an own one is given as module:Class")
    found = import_own(name, "tracker")
    if not (isinstance(found, type) and issubclass(found, Observer)):
        raise ValueError(f"{name!r} is not a subclass of fedra.server.Observer; give module:Class of one")
    return found


def tracker_parameters(name: str) -> dict[str, Any]:
    """Return the parameters that a tracker takes, with their defaults; of an own one, those that can be named."""
    return {
        parameter.name: parameter.default
        for parameter in parameters_of(tracker_class(name)).values()
        if parameter.kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    }


def make_tracker(spec: str, **parameters: Any) -> Observer:
    """Make a tracker from its name, or from a text of its name and parameters such as ``mlflow folder=DIR``.

    Args:
        spec: the registry name or module:Class, with NAME=VALUE after it; a value is read as TOML where it is that,
            else as text, and one with spaces is quoted.
        parameters: more of them; these win.

    Raises:
        ValueError: for an unknown name, or a text of another form.
        TypeError: for an unknown parameter.
        ModuleNotFoundError: where the tool's library is not installed, with the command that installs it.
    """
    if not isinstance(spec, str):
        raise TypeError(f"tracker {spec!r}; give a name, {_FORM}")
    name, stated = parse_spec(spec, "tracker", f"give a name, {_FORM}")
    valid = tracker_parameters(name)
    stated |= parameters
    for parameter in stated:
        if parameter not in valid:
            raise TypeError(f"tracker {name!r} has no parameter {parameter!r}{nearest(parameter, valid)}")
    return tracker_class(name)(**stated)


def make_trackers(specs: Iterable[str], *, root: str | os.PathLike[str] | None = None) -> list[Observer]:
    """Make the trackers of a command line, one for each ``--track``; the same text twice is an error.

    Args:
        specs: what `make_tracker` takes.
        root: where trackers that no folder is stated for have theirs, each by its name, so that the runs of a grid are
            in one place; None: in each run's own folder.
    """
    given = list(specs)
    for spec in given:
        if given.count(spec) > 1:
            raise ValueError(f"tracker {spec!r} is given {given.count(spec)} times; give it once")
    made = []
    for spec in given:
        name, stated = parse_spec(spec, "tracker", f"give a name, {_FORM}")
        if root is not None and name in TRACKERS:
            stated.setdefault("folder", os.path.join(root, name))
        made.append(make_tracker(spec, **stated))
    return made
