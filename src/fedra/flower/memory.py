"""Handing freed memory back to the system."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable


@functools.cache
def _trim() -> Callable[[int], int] | None:
    """Return the C library's malloc_trim, which glibc has and others have no need of."""
    if not sys.platform.startswith("linux"):
        return None
    return getattr(ctypes.CDLL(None), "malloc_trim", None)


def give_back() -> None:
    """Return freed memory to the system; the C library itself keeps what lies between blocks still in use."""
    if (trim := _trim()) is not None:
        trim(0)
