"""What Guard needs to know of a strategy it did not write, and what that remembers from round to round."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt
from flwr.server.strategy import Strategy as LegacyStrategy
from flwr.serverapp.strategy import Strategy

from fedra.rules import RULES, Rule
from fedra.server.faults import short
from fedra.server.state import Arrays, SavedState

_SEPARATOR = "\x1f"
_PLAIN = (bool, int, float, str, type(None))


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


def accountants(inner: Any) -> dict[tuple[str, str], Any]:
    """Return the privacy accountants of a strategy and those it wraps, by depth and attribute."""
    return {
        (str(depth), attribute): value
        for depth, strategy in enumerate(layers(inner))
        for attribute, value in vars(strategy).items()
        if hasattr(value, "get_privacy_spent") and hasattr(value, "compose")
    }


def check_selects(rule: Rule) -> None:
    """Refuse rules that do not score and select clients: there would be nobody to keep from the inner strategy."""
    if not rule.scored:
        valid = ", ".join(name for name, kind in RULES.items() if kind.scored)
        raise ValueError(
            f"rule {rule.name!r} does not select clients, so it cannot guard a strategy; use one of {valid}, "
            "or RobustStrategy, which takes any rule"
        )


def _arrays(value: Any) -> list[tuple[tuple[str, ...], npt.NDArray[Any]]]:
    if isinstance(value, np.ndarray) and value.dtype != object:
        return [((), value)]
    # Arithmetic on 0-d arrays gives NumPy scalars, so those are arrays too.
    if isinstance(value, list) and value and all(isinstance(item, np.ndarray | np.generic) for item in value):
        return [(("list", str(place)), np.asarray(item)) for place, item in enumerate(value)]
    if isinstance(value, dict) and value and all(isinstance(item, np.ndarray | np.generic) for item in value.values()):
        return [(("dict", str(key)), np.asarray(item)) for key, item in value.items()]
    return []


class InnerMemory:
    """What a strategy and those it wraps remember: arrays, numbers and privacy accountants, for a state file.

    Numbers are saved once they are no longer what they were at the beginning (an adaptive clipping norm): what never
    moves is a setting, and a server may be started again with other settings.
    """

    def __init__(self, inner: Any, *, saved: bool) -> None:
        self._inner = inner
        self._first = self._numbers()
        self._moved: set[str] = set()
        if saved:
            self._check_accountants()

    @property
    def writer(self) -> str:
        """What must be the same for a state to be resumed from."""
        return "Guard of " + " of ".join(type(strategy).__name__ for strategy in layers(self._inner))

    def begin(self) -> None:
        """Take the strategy as it is now for the beginning: the caller may have changed settings since it was made."""
        self._first = self._numbers()

    def memory(self) -> tuple[Arrays, Mapping[str, Any]]:
        """Return all that the strategy remembers."""
        return inner_memory(self._inner), self._plain_values()

    def recall(self, saved: SavedState) -> None:
        """Give the strategy back what `memory` returned; ValueError where it has another accountant, or none."""
        recall_inner(self._inner, saved.memory)
        self._recall_plain(saved.numbers)

    def _check_accountants(self) -> None:
        """Refuse accountants whose state cannot be saved: a restarted server would forget the privacy it spent."""
        for place, accountant in accountants(self._inner).items():
            if not (hasattr(accountant, "state_dict") and hasattr(accountant, "load_state_dict")):
                raise ValueError(
                    f"state= cannot keep the privacy that {_name(place)} has spent: {type(accountant).__name__} has no "
                    "state_dict and load_state_dict; leave out state=, or use an accountant that has them"
                )

    def _plain_values(self) -> dict[str, Any]:
        """Return numbers and accountants as values that JSON holds exactly."""
        now = self._numbers()
        self._moved |= {place for place, value in now.items() if repr(value) != repr(self._first.get(place, ...))}
        return {
            "moved": {place: value for place, value in now.items() if place in self._moved},
            "accountants": {
                _SEPARATOR.join(place): accountant.state_dict()
                for place, accountant in accountants(self._inner).items()
            },
        }

    def _recall_plain(self, values: Mapping[str, Any]) -> None:
        saved = dict(values.get("accountants", {}))
        present = {_SEPARATOR.join(place): accountant for place, accountant in accountants(self._inner).items()}
        if saved.keys() != present.keys():
            odd = _name(tuple(sorted(saved.keys() ^ present.keys())[0].split(_SEPARATOR)))
            held = "does not hold" if present.keys() - saved.keys() else "holds"
            raise ValueError(f"the state {held} the privacy spent by {odd}, unlike this strategy")
        for place, accountant in present.items():
            accountant.load_state_dict(saved[place])
        strategies = list(layers(self._inner))
        for place, value in values.get("moved", {}).items():
            depth, attribute = place.split(_SEPARATOR)
            strategy = strategies[int(depth)]
            check_settable(strategy, attribute)
            if not _replaces(value, getattr(strategy, attribute, None)):
                raise ValueError(f"{short(attribute)} cannot be {short(value)}")
            setattr(strategy, attribute, value)
            self._moved.add(place)

    def _numbers(self) -> dict[str, Any]:
        return {
            f"{depth}{_SEPARATOR}{attribute}": value
            for depth, strategy in enumerate(layers(self._inner))
            for attribute, value in vars(strategy).items()
            if isinstance(value, _PLAIN) and not isinstance(value, Enum)
        }


def _replaces(value: Any, present: Any) -> bool:
    """Tell whether a saved value is one that can have come of the present one: a number of a number, text of text."""
    if not isinstance(value, _PLAIN):
        return False
    return value is None or present is None or isinstance(value, str) == isinstance(present, str)


def _name(place: tuple[str, ...]) -> str:
    return f"`{place[-1]}`"
