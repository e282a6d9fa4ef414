"""From replies to updates: replies as flat vectors, less what was sent out."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from fedra.kernels.parted import PartedRows, is_piece
from fedra.kernels.threads import thread_count
from fedra.server.form import ModelForm
from fedra.server.replies import Reply
from fedra.server.spill import Spill, written

# So many bytes are one request to the system (C libraries serve smaller ones from memory that freed replies scatter),
# in large pages, and small beside the replies where memory matters.
_BLOCK_BYTES = 36 * 1024 * 1024


def less_model(vectors: Sequence[npt.NDArray[Any]], model: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
    """Return each vector less the model; the vectors themselves stay as they are."""
    # What overflows is found by screening.
    with np.errstate(all="ignore"):
        return [vector - model for vector in vectors]


def rows_in_place(replies: list[Reply], model: ModelForm) -> PartedRows | None:
    """Return the usable replies as rows of their own arrays; None where an array would have to be converted first."""
    views = [reply.views for reply in replies if not reply.fault]
    if not views or not all(is_piece(view, model.dtype) for row in views for view in row):
        return None
    return PartedRows(views, model.dtype)


def flat_vectors(
    replies: list[Reply],
    model: ModelForm,
    *,
    minus: npt.NDArray[Any] | None,
    release: Callable[[Reply], None],
    threads: int | None,
    spill: Spill | None = None,
) -> list[npt.NDArray[Any]]:
    """Return one vector for each usable reply; each reply's own memory is released once it has been read.

    Replies are read and released block by block, and what they leave is handed back to the system, so that the extra
    memory is that of one block, not of all replies. With `spill` the vectors are on disk.
    """
    usable = [reply for reply in replies if not reply.fault]
    row_bytes = max(1, model.dimension * model.dtype.itemsize)
    size = max(1, _BLOCK_BYTES // row_bytes)
    vectors: list[npt.NDArray[Any]] = []
    with ThreadPoolExecutor(thread_count(threads)) as pool:
        for first in range(0, len(usable), size):
            batch = usable[first : first + size]
            rows = _room(len(batch), model, spill)
            list(pool.map(model.flatten, [reply.views for reply in batch], rows, [minus] * len(batch)))
            if spill is not None:
                list(pool.map(written, rows))
            vectors += rows
            for reply in batch:
                release(reply)
                reply.views = []
            if len(batch) * row_bytes >= _BLOCK_BYTES // 2:
                give_back()
    return vectors


def _room(count: int, model: ModelForm, spill: Spill | None) -> list[npt.NDArray[Any]]:
    if spill is None:
        return list(np.empty((count, model.dimension), dtype=model.dtype))
    return [spill.vector(model.dimension, model.dtype) for _ in range(count)]


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
