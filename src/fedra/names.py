"""Helping with names that were not quite right."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, valid: Iterable[str]) -> str:
    """Return the end of an error message: the nearest valid name, if one is near, and all valid ones."""
    names = list(valid)
    close = get_close_matches(name, names, n=1)
    guess = f"; did you mean {close[0]!r}?" if close else ";"
    return f"{guess} valid: {', '.join(names) or 'none'}"
