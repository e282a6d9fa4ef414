"""Compiled loops for statistics of each column: a tile of columns is sorted by a network, then reduced.

No fastmath here: what these loops decide (which value lies where) must not depend on reordering. A network does not
care which of two zeros it moves; no result here depends on their signs, because every sum starts at +0.0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from fedra.kernels.halves_compiled import widened
from fedra.kernels.networks_compiled import sort_columns
from fedra.kernels.pointers import fetch_ahead, row_part, write_part
from fedra.kernels.scalars import chosen, one_if
from fedra.kernels.wide import apart_in_memory, prefer_wide_vectors


@njit(nogil=True, cache=True)
def _load(addresses: Any, first: int, stop: int, like: Any, tile: Any) -> Any:
    used = min(tile.shape[1], stop - first)
    for i in range(addresses.shape[0]):
        row = row_part(addresses[i], first, first + used, like)
        fetch_ahead(addresses[i], i, first, stop, tile.shape[1], like)
        target = tile[i]
        for k in range(used):
            target[k] = widened(row[k])
    return used


@njit(nogil=True, cache=True)
def _add_share(sums: Any, row: Any, share: float) -> None:
    prefer_wide_vectors()
    apart_in_memory()
    for k in range(sums.shape[0]):
        sums[k] += np.float64(row[k]) * share


@njit(nogil=True, cache=True)
def trimmed_mean_block(
    addresses: Any, trim: int, start: int, stop: int, steps: Any, like: Any, tile: Any, sums: Any, out: Any
) -> None:
    """Write the mean of each column without its `trim` smallest and largest values."""
    prefer_wide_vectors()
    count = addresses.shape[0]
    share = 1.0 / (count - 2 * trim)
    for first in range(start, stop, tile.shape[1]):
        used = _load(addresses, first, stop, like, tile)
        sort_columns(tile, steps)
        sums[:] = 0.0
        for i in range(trim, count - trim):
            _add_share(sums, tile[i], share)
        write_part(out, first, sums, used)


@njit(nogil=True, cache=True)
def _middle(low: Any, high: Any, median: Any) -> None:
    prefer_wide_vectors()
    apart_in_memory()
    for k in range(median.shape[0]):
        median[k] = 0.5 * np.float64(low[k]) + 0.5 * np.float64(high[k])


@njit(nogil=True, cache=True)
def _move_up(low: Any, next_high: Any, median: Any, moving: Any, lowest: Any) -> None:
    """Move a column's window up by one where its lowest value is farther from the median than the next above it."""
    prefer_wide_vectors()
    apart_in_memory()
    for k in range(median.shape[0]):
        middle = median[k]
        moving[k] = moving[k] * one_if(middle - np.float64(low[k]) > np.float64(next_high[k]) - middle)
        lowest[k] += moving[k]


@njit(nogil=True, cache=True, error_model="numpy")
def _add_inside(sums: Any, row: Any, place: float, near: float, lowest: Any) -> None:
    prefer_wide_vectors()
    apart_in_memory()
    for k in range(sums.shape[0]):
        inside = (lowest[k] <= place) & (place < lowest[k] + near)
        sums[k] += chosen(inside, np.float64(row[k]) / near, 0.0)


@njit(nogil=True, cache=True)
def around_median_block(
    addresses: Any, near: int, start: int, stop: int, steps: Any, like: Any, tile: Any, work: Any, out: Any
) -> None:
    """Write the mean of the `near` values of each column that lie closest to its median; `work` holds four rows."""
    prefer_wide_vectors()
    count = addresses.shape[0]
    median, moving, lowest, sums = work[0], work[1], work[2], work[3]
    for first in range(start, stop, tile.shape[1]):
        used = _load(addresses, first, stop, like, tile)
        sort_columns(tile, steps)
        _middle(tile[(count - 1) // 2], tile[count // 2], median)
        # The closest values are neighbours in sorted order; of two equally close, the smaller one stays.
        moving[:] = 1.0
        lowest[:] = 0.0
        for i in range(count - near):
            _move_up(tile[i], tile[i + near], median, moving, lowest)
        sums[:] = 0.0
        for i in range(count):
            _add_inside(sums, tile[i], np.float64(i), np.float64(near), lowest)
        write_part(out, first, sums, used)
