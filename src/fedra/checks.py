"""Checking what a caller gave: one vocabulary for what was wrong, with which value, and what to give instead.

A value of the wrong kind raises TypeError, one of the right kind out of range ValueError; both name the parameter, show
the value, and say what to give. Truth values never count as numbers. What a *client* sent is not checked here, since it
must not raise: see `fedra.screening`.
"""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from fedra.names import nearest
from fedra.untrusted import one_line

T = TypeVar("T")

# The whole numbers that tables hold.
MOST_WHOLE = 2**63 - 1
_LONGEST_VALUE = 80


def is_whole(value: Any, least: int = 0, most: int = MOST_WHOLE) -> bool:
    """Whether a value is a whole number in this range; True and False are none."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def is_number(value: Any, least: float = -math.inf, most: float = math.inf) -> bool:
    """Whether a value is a finite number in this range, one that a float can hold."""
    if not _is_real(value):
        return False
    try:
        return math.isfinite(value) and bool(least <= value <= most)
    except OverflowError:
        return False


def whole(name: str, value: Any, least: int = 0, most: int | None = None) -> int:
    """Return a whole number of at least `least` and at most `most`."""
    wanted = f"a whole number of at least {least}" if most is None else f"a whole number from {least} to {most}"
    if not _is_integral(value):
        raise TypeError(wrong(name, value, wanted))
    if value < least or (most is not None and value > most):
        raise ValueError(wrong(name, value, wanted))
    return int(value)


def number(
    name: str,
    value: Any,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    below: float | None = None,
    wanted: str = "",
) -> float:
    """Return a finite number within its bounds; `wanted` says in words what to give where the bounds do not."""
    wanted = wanted or "a finite number" + "".join(
        f" {word} {bound:g}"
        for word, bound in (("of at least", least), ("above", above), ("of at most", most), ("below", below))
        if bound is not None
    )
    if not _is_real(value):
        raise TypeError(wrong(name, value, wanted))
    inside = (
        is_number(value)
        and (least is None or value >= least)
        and (above is None or value > above)
        and (most is None or value <= most)
        and (below is None or value < below)
    )
    if not inside:
        raise ValueError(wrong(name, value, wanted))
    return float(value)


def ratio(value: Any, name: str = "malicious_ratio") -> float:
    """Return an assumed share of malicious clients, a number in [0, 0.5)."""
    wanted = "a number from 0 up to, not including, 0.5: no rule can stand against half the clients"
    return number(name, value, least=0, below=0.5, wanted=wanted)


def switch(name: str, value: Any) -> bool:
    """Return a truth value; any text, even "no", would otherwise count as on."""
    if not isinstance(value, bool):
        raise TypeError(wrong(name, value, "True or False"))
    return value


def text(name: str, value: Any, wanted: str = "a text") -> str:
    """Return a text."""
    if not isinstance(value, str):
        raise TypeError(wrong(name, value, wanted))
    return value


def path(name: str, value: Any) -> Path:
    """Return the path of a file; an empty one would be the folder that the program happens to run in."""
    wanted = "the path of a file, as a text or a pathlib.Path"
    text = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(text, str):
        raise TypeError(wrong(name, value, wanted))
    # What no file system takes: a null character, and what cannot be written in its encoding.
    if not text or "\0" in text or not _encodable(text):
        raise ValueError(wrong(name, value, wanted))
    return Path(text)


def table(name: str, value: Any) -> Mapping[str, Any]:
    """Return a table of names and values, such as parameters."""
    if not isinstance(value, Mapping):
        raise TypeError(wrong(name, value, "a table, such as {name = value}"))
    return value


def choice(name: str, value: Any, valid: Iterable[T]) -> T:
    """Return one of the valid values; the error lists them, and names the nearest."""
    options = list(valid)
    for option in options:
        if type(option) is type(value) and option == value:
            return option
    listed = nearest(value, map(str, options)) if isinstance(value, str) else f"; valid: {', '.join(map(str, options))}"
    right_kind = any(type(option) is type(value) for option in options)
    raise (ValueError if right_kind else TypeError)(f"{name}={display_value(value)}{listed}")


def at_most_one(**given: Any) -> None:
    """Raise where more than one of these is given (is not None)."""
    stated = {name: value for name, value in given.items() if value is not None}
    if len(stated) > 1:
        values = " and ".join(f"{name}={display_value(value)}" for name, value in stated.items())
        raise ValueError(f"{values}; give one of them")


def wrong(name: str, value: Any, wanted: str) -> str:
    """Return the sentence for a value that is not what was wanted."""
    return f"{name}={display_value(value)}; give {wanted}"


def display_value(value: Any) -> str:
    """Return a value as a short text on one line for an error message, whatever it is."""
    try:
        words = repr(value)
    except Exception:  # an object of somebody else may fail at this, and Python refuses whole numbers of many digits
        words = _described(value)
    else:
        if isinstance(value, int) and len(words) > _LONGEST_VALUE:
            words = _described(value)
    # The representation of somebody else's object may hold anything, and a terminal obeys control characters.
    words = one_line(words[: 4 * _LONGEST_VALUE])
    return words if len(words) <= _LONGEST_VALUE else f"{words[: _LONGEST_VALUE - 3]}..."


def _described(value: Any) -> str:
    return f"a whole number of {value.bit_length()} bits" if isinstance(value, int) else f"a {type(value).__name__}"


def _encodable(text: str) -> bool:
    try:
        os.fsencode(text)
    except UnicodeError:
        return False
    return True


# `Any` rather than a narrowed type: the abstract numbers have no comparisons that a type checker knows of.
def _is_real(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _is_integral(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)
