"""What a recipe makes of an aggregator's parameters: it writes them into the job's JSON, and some are lost on the way.

NVFlare looks a constructor's parameters up among the attributes of their names, in objects within objects too. One that
is not kept under its own name is left out without a word; a path becomes "."; a list of objects, a function or a NumPy
number ends the export with an error that names none of them.
"""

from __future__ import annotations

import enum
import inspect
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedra.checks import display_value, path, wrong
from fedra.names import parameters_of
from fedra.server import Observer
from fedra.server.observers import checked_observers

# NVFlare takes a dictionary with one of these for the description of an object to build.
_COMPONENT_KEYS = ("path", "class_path", "name")


@dataclass(frozen=True, eq=False, kw_only=True)
class Chain(Observer):
    """Several observers as one object: a recipe can write out objects within objects, but no list of them."""

    first: Observer
    rest: Observer | None = None

    def members(self) -> Iterator[Observer]:
        """Yield the observers in their order."""
        for part in (self.first, self.rest):
            if part is not None:
                yield from members(part)


def chained(observers: Observer | Iterable[Observer]) -> Observer | tuple[()]:
    """Return observers as one object that a recipe can write out; the empty tuple where there are none."""
    given = [observers] if isinstance(observers, Observer) else observers
    chain: Observer | None = None
    for observer in reversed(checked_observers(given)):
        check_survives("observers", observer)
        chain = observer if chain is None else Chain(first=observer, rest=chain)
    return () if chain is None else chain


def members(observers: Observer | tuple[()]) -> tuple[Observer, ...]:
    """Return the observers that `chained` made one of."""
    if isinstance(observers, Chain):
        return tuple(observers.members())
    return (observers,) if isinstance(observers, Observer) else ()


def path_text(name: str, value: Any) -> str | None:
    """Return a path on the server as text."""
    if value is None:
        return None
    return str(path(name, value))


def check_survives(name: str, value: Any) -> None:
    """Raise TypeError for a parameter that would not arrive on the server as it is here."""
    if value is None or type(value) in (bool, int, float, str) or _is_plain_enum(value):
        return
    if isinstance(value, np.generic):
        raise TypeError(wrong(name, value, f"a plain Python number, {type(value.item()).__name__}(...)"))
    if isinstance(value, os.PathLike):
        raise TypeError(wrong(name, value, "the path as a text: a recipe writes a path object out as '.'"))
    if isinstance(value, type) or inspect.isroutine(value):
        raise TypeError(
            wrong(name, value, "an instance of a class: functions and classes cannot be written into a job")
        )
    if isinstance(value, list | tuple | dict | set | frozenset | bytes | complex | enum.Enum):
        _check_container(name, value)
    else:
        _check_object(name, value)


def _is_plain_enum(value: Any) -> bool:
    return isinstance(value, enum.Enum) and isinstance(value, int | str)


def _check_container(name: str, value: Any) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str) or key in _COMPONENT_KEYS:
                advice = (
                    f"keys that are texts, and none of {', '.join(_COMPONENT_KEYS)}: NVFlare reads those as an object"
                )
                raise TypeError(wrong(f"{name} has the key {key!r}; {name}", value, advice))
            _check_item(f"{name}[{key!r}]", item)
    elif isinstance(value, list | tuple):
        for place, item in enumerate(value):
            _check_item(f"{name}[{place}]", item)
    else:
        raise TypeError(wrong(name, value, "plain numbers, texts, lists or dictionaries: it cannot be written as JSON"))


def _check_item(name: str, item: Any) -> None:
    if item is None or isinstance(item, bool | int | float | str | list | tuple | dict):
        check_survives(name, item)
    else:
        raise TypeError(wrong(name, item, "plain values: a recipe cannot write out objects within lists"))


def _check_object(name: str, value: Any) -> None:
    kind = type(value)
    if "." in kind.__qualname__:
        raise TypeError(
            f"{name}={display_value(value)}; its class {kind.__qualname__} is defined inside another or a function: "
            "move it to the top of a module, where the server finds it"
        )
    kept = vars(value) if hasattr(value, "__dict__") else {}
    parameters = {} if kind.__init__ is object.__init__ else parameters_of(kind)
    for parameter in parameters.values():
        attribute = parameter.name if parameter.name in kept else f"_{parameter.name}"
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL) or attribute not in kept:
            raise TypeError(
                f"{name}={display_value(value)}; {kind.__name__} does not keep its parameter {parameter.name!r} as an "
                "attribute of that name, so a recipe would lose it: make it a dataclass, or keep it"
            )
        check_survives(f"{name}.{parameter.name}", kept[attribute])
