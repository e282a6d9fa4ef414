"""What a strategy remembers, copied before it is asked to aggregate and put back where its result is not used."""

from __future__ import annotations

import copy
import dataclasses
import math
import sys
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord, RecordDict

_Records = ArrayRecord | MetricRecord | ConfigRecord | RecordDict


@dataclasses.dataclass(frozen=True, eq=False)
class Snapshot:
    """The attributes of a strategy and of all it wraps, as they were."""

    attributes: list[tuple[Any, dict[str, Any]]]


def snapshot(inner: Any) -> Snapshot:
    """Copy what a strategy remembers: numbers, arrays, Flower's records, data classes, and containers of them.

    Strategies it refers to are copied with it, whatever their attribute is called. Other objects are remembered, not
    copied: a random generator goes on, so that noise is never drawn twice.
    """
    memo: dict[int, Any] = {}
    return Snapshot([(strategy, _copied(vars(strategy), memo)) for strategy in strategies(inner)])


def put_back(before: Snapshot) -> None:
    """Give the strategies of a snapshot what they remembered when it was taken."""
    for strategy, attributes in before.attributes:
        held = vars(strategy)
        held.clear()
        held.update(attributes)


def not_finite(inner: Any) -> set[str]:
    """Return where a strategy remembers numbers that are not finite."""
    found: set[str] = set()
    for depth, strategy in enumerate(strategies(inner)):
        for attribute, value in vars(strategy).items():
            if not all(_finite(leaf) for leaf in _leaves(value, set())):
                found.add(f"{depth} {attribute}")
    return found


def strategies(inner: Any) -> list[Any]:
    """Return a strategy and those it refers to, of either API, outermost first."""
    found = [inner]
    for strategy in found:
        for leaf in _leaves(list(vars(strategy).values()), set()):
            if _is_strategy(leaf) and all(leaf is not other for other in found):
                found.append(leaf)
    return found


def _is_strategy(value: Any) -> bool:
    return hasattr(type(value), "aggregate_train") or hasattr(type(value), "aggregate_fit")


def _leaves(value: Any, seen: set[int]) -> Iterator[Any]:
    """Yield what lies in a value and the containers within it."""
    parts = _parts(value)
    if parts is None:
        yield value
    elif id(value) not in seen:
        seen.add(id(value))
        for part in parts:
            yield from _leaves(part, seen)


def _parts(value: Any) -> list[Any] | None:
    if isinstance(value, dict | _Records):
        return list(value.values())
    if isinstance(value, list | tuple | set | frozenset | deque):
        return list(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type | Array) and hasattr(value, "__dict__"):
        return list(vars(value).values())
    return None


def _finite(leaf: Any) -> bool:
    if isinstance(leaf, Array):
        if leaf.stype != "numpy.ndarray":
            return True
        leaf = leaf.numpy()
    if isinstance(leaf, float):
        return math.isfinite(leaf)
    if isinstance(leaf, np.ndarray | np.generic) and leaf.dtype.kind in "fc":
        return bool(np.isfinite(leaf).all())
    return True


def _copied(value: Any, memo: dict[int, Any]) -> Any:
    """Return a copy that nothing done to the original changes; what is held twice is copied once."""
    if id(value) in memo:
        return memo[id(value)]
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        made: Any = value.copy()
    elif isinstance(value, Array):
        made = Array(value.dtype, tuple(value.shape), value.stype, value.data)
    elif _is_plain_tensor(value):
        made = value.clone()
    elif isinstance(value, tuple) and type(value) is not tuple:
        return value  # a named tuple, which may be built in any way
    elif (parts := _parts(value)) is None or isinstance(value, set | frozenset):
        return copy.copy(value) if isinstance(value, set) else value
    elif isinstance(value, tuple):
        made = tuple(_copied(part, memo) for part in parts)
    else:
        made = copy.copy(value)
        memo[id(value)] = made
        _fill(made, value, memo)
    memo[id(value)] = made
    return made


def _fill(made: Any, value: Any, memo: dict[int, Any]) -> None:
    if isinstance(value, dict):
        made.update({key: _copied(part, memo) for key, part in value.items()})
    elif isinstance(value, _Records):
        made.__dict__["_data"] = {key: _copied(part, memo) for key, part in value.items()}
    elif isinstance(value, deque | list):
        made.clear()
        made.extend(_copied(part, memo) for part in value)
    else:
        vars(made).update({key: _copied(part, memo) for key, part in vars(value).items()})


def _is_plain_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and type(value) is getattr(torch, "Tensor", None) and not value.requires_grad
