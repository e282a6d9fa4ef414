"""The one exception of the data package."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class DatasetError(ValueError):
    """Data that are missing, corrupt or malformed; the message names the file and the remedy."""


def nearest_names(name: str, valid: Iterable[str]) -> str:
    """A sentence that points from a mistyped name to the valid ones."""
    options = sorted(valid)
    close = difflib.get_close_matches(name, options, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(repr(option) for option in close)}? " if close else ""
    return f"{hint}valid: {', '.join(options) or '(none)'}"
