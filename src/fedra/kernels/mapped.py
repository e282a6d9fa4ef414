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
    """Tell whether a vector is a mapped file, which holds all that the vector does."""
    return (
        isinstance(vector, np.memmap)
        and vector.mode in _SHARED
        and isinstance(getattr(vector, "_mmap", None), mmap.mmap)
        and hasattr(mmap, "MADV_DONTNEED")
    )


def forget(vectors: Iterable[npt.NDArray[Any]], start: int, stop: int) -> None:
    """Take the pages that hold columns start..stop out of this process's memory; the files still have them."""
    for vector in vectors:
        if not is_mapped(vector) or not vector.flags.c_contiguous:
            continue
        mapping: mmap.mmap = vector._mmap  # type: ignore[attr-defined]
        begin = np.frombuffer(mapping, dtype=np.uint8).ctypes.data
        first = vector.ctypes.data - begin + start * vector.itemsize
        last = vector.ctypes.data - begin + stop * vector.itemsize
        # Whole pages only: those at the edges are being read by others.
        first = -(-first // mmap.PAGESIZE) * mmap.PAGESIZE
        last = last // mmap.PAGESIZE * mmap.PAGESIZE
        if first < last:
            mapping.madvise(mmap.MADV_DONTNEED, first, last - first)
