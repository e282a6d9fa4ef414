"""The plain values and privacy accountants that an inner strategy remembers from round to round."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from fedra.flower.faults import short
from fedra.flower.inner import check_settable, layers
from fedra.flower.privacy import accountants

_SEPARATOR = "\x1f"
_PLAIN = (bool, int, float, str, type(None))


class PlainMemory:
    """Numbers and accountants of a strategy and those it wraps, for a state file.

    Numbers are saved once they are no longer what they were at the beginning (an adaptive clipping norm): what never
    moves is a setting, and a server may be started again with other settings.
    """

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._first = self._numbers()
        self._moved: set[str] = set()

    def begin(self) -> None:
        """Take the strategy as it is now for the beginning: the caller may have changed settings since it was made."""
        self._first = self._numbers()

    def check(self) -> None:
        """Refuse accountants whose state cannot be saved: a restarted server would forget the privacy it spent."""
        for place, accountant in accountants(self._inner).items():
            if not (hasattr(accountant, "state_dict") and hasattr(accountant, "load_state_dict")):
                raise ValueError(
                    f"state= cannot keep the privacy that {_name(place)} has spent: {type(accountant).__name__} has no "
                    "state_dict and load_state_dict; leave out state=, or use an accountant that has them"
                )

    def values(self) -> dict[str, Any]:
        """Return what to save, as values that JSON holds exactly."""
        now = self._numbers()
        self._moved |= {place for place, value in now.items() if repr(value) != repr(self._first.get(place, ...))}
        return {
            "moved": {place: value for place, value in now.items() if place in self._moved},
            "accountants": {
                _SEPARATOR.join(place): accountant.state_dict()
                for place, accountant in accountants(self._inner).items()
            },
        }

    def recall(self, values: Mapping[str, Any]) -> None:
        """Give the strategy back what `values` returned; ValueError where it has another accountant, or none."""
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
