"""What Guard needs to know of a strategy it did not write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from flwr.server.strategy import Strategy as LegacyStrategy
from flwr.serverapp.strategy import Strategy

from fedra.flower.faults import short

_SEPARATOR = "\x1f"


def inner_setting(inner: Strategy, name: str, default: Any) -> Any:
    """Return a setting of a strategy, or of the one it wraps, as Flower's privacy wrappers do."""
    for strategy in layers(inner):
        if hasattr(strategy, name):
            return getattr(strategy, name)
    return default


def inner_memory(inner: Strategy) -> dict[str, npt.NDArray[Any]]:
    """Return what a strategy remembers in arrays: its attributes that are arrays, or lists or dictionaries of them.

    That is all that FedAdam, FedYogi, FedAdagrad and FedAvgM remember, alone or wrapped.
    """
    memory: dict[str, npt.NDArray[Any]] = {}
    for depth, strategy in enumerate(layers(inner)):
        for attribute, value in vars(strategy).items():
            for key, array in _arrays(value):
                memory[_SEPARATOR.join((str(depth), attribute, *key))] = array
    return memory


def recall_inner(inner: Strategy, memory: Mapping[str, npt.NDArray[Any]]) -> None:
    """Give a strategy of the same kind back what `inner_memory` found."""
    strategies = list(layers(inner))
    fresh: dict[tuple[int, str], Any] = {}
    for name, array in memory.items():
        depth, attribute, *key = name.split(_SEPARATOR)
        place = (int(depth), attribute)
        if not key:
            fresh[place] = array
        elif key[0] == "list":
            fresh.setdefault(place, []).append(array)
        else:
            fresh.setdefault(place, {})[_SEPARATOR.join(key[1:])] = array
    for (level, attribute), value in fresh.items():
        check_settable(strategies[level], attribute)
        setattr(strategies[level], attribute, value)


def check_settable(strategy: Any, attribute: str) -> None:
    """Refuse names under which a strategy keeps no values: a saved state must not replace what it does."""
    of_class = getattr(type(strategy), attribute, None)
    if attribute.startswith("__") or callable(of_class) or isinstance(of_class, property):
        raise ValueError(f"{short(attribute)} is nothing that {type(strategy).__name__} remembers")


def layers(strategy: Any) -> Iterator[Any]:
    """Return a strategy and, one after the other, those it wraps."""
    seen: list[Any] = []
    while isinstance(strategy, Strategy | LegacyStrategy) and all(strategy is not other for other in seen):
        seen.append(strategy)
        yield strategy
        strategy = getattr(strategy, "strategy", None)


def _arrays(value: Any) -> list[tuple[tuple[str, ...], npt.NDArray[Any]]]:
    if isinstance(value, np.ndarray) and value.dtype != object:
        return [((), value)]
    # Arithmetic on 0-d arrays gives NumPy scalars, so those are arrays too.
    if isinstance(value, list) and value and all(isinstance(item, np.ndarray | np.generic) for item in value):
        return [(("list", str(place)), np.asarray(item)) for place, item in enumerate(value)]
    if isinstance(value, dict) and value and all(isinstance(item, np.ndarray | np.generic) for item in value.values()):
        return [(("dict", str(key)), np.asarray(item)) for key, item in value.items()]
    return []
