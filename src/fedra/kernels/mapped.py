"""Rows that are mapped files: their pages need not stay in memory after they were read."""

from __future__ import annotations

import mmap
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

# A copy on write has values that are in no file.
_SHARED = ("r", "r+", "w+")


def is_mapped(vector: npt.NDArray[Any]) -> bool:
    """Tell whether a vector is a mapped file, or a view of one, which holds all that the vector does."""
    return _mapping(vector) is not None


def _mapping(vector: Any) -> mmap.mmap | None:
    while isinstance(vector, np.ndarray):
        if isinstance(vector, np.memmap):
            found = getattr(vector, "_mmap", None)
            usable = isinstance(found, mmap.mmap) and vector.mode in _SHARED and hasattr(mmap, "MADV_DONTNEED")
            return found if usable else None
        vector = vector.base
    return None


def forget(vectors: Iterable[npt.NDArray[Any]], start: int, stop: int) -> None:
    """Take the pages that hold columns start..stop out of this process's memory; the files still have them."""
    for vector in vectors:
        mapping = _mapping(vector)
        if mapping is None or not vector.flags.c_contiguous:
            continue
        begin = np.frombuffer(mapping, dtype=np.uint8).ctypes.data
        first = vector.ctypes.data - begin + start * vector.itemsize
        last = vector.ctypes.data - begin + stop * vector.itemsize
        # Whole pages only: those at the edges are being read by others.
        first = -(-first // mmap.PAGESIZE) * mmap.PAGESIZE
        last = last // mmap.PAGESIZE * mmap.PAGESIZE
        if first < last:
            mapping.madvise(mmap.MADV_DONTNEED, first, last - first)
