"""Compiled loops for statistics of each column: a tile of columns is sorted by a network, then reduced.

No fastmath here: what these loops decide (which value lies where) must not depend on reordering.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from fedra.kernels.pointers import row_part
from fedra.kernels.wide import prefer_wide_vectors


@njit(nogil=True, cache=True)
def _load(addresses: Any, first: int, stop: int, tile: Any) -> Any:
    used = min(tile.shape[1], stop - first)
    for i in range(addresses.shape[0]):
        row = row_part(addresses[i], first, first + used, tile)
        target = tile[i]
        for k in range(used):
            target[k] = row[k]
    return used


@njit(nogil=True, cache=True)
def _exchange(low: Any, high: Any) -> None:
    prefer_wide_vectors()
    for k in range(low.shape[0]):
        a, b = low[k], high[k]
        low[k] = a if a < b else b
        high[k] = a if a > b else b


@njit(nogil=True, cache=True)
def _sort(tile: Any, pairs: Any) -> None:
    prefer_wide_vectors()
    for c in range(pairs.shape[0]):
        _exchange(tile[pairs[c, 0]], tile[pairs[c, 1]])


@njit(nogil=True, cache=True)
def trimmed_mean_block(
    addresses: Any, trim: int, start: int, stop: int, pairs: Any, tile: Any, sums: Any, out: Any
) -> None:
    """Write the mean of each column without its `trim` smallest and largest values."""
    prefer_wide_vectors()
    count = addresses.shape[0]
    share = 1.0 / (count - 2 * trim)
    for first in range(start, stop, tile.shape[1]):
        used = _load(addresses, first, stop, tile)
        _sort(tile, pairs)
        sums[:] = 0.0
        for i in range(trim, count - trim):
            row = tile[i]
            for k in range(sums.shape[0]):
                sums[k] += np.float64(row[k]) * share
        for k in range(used):
            out[first + k] = sums[k]


@njit(nogil=True, cache=True)
def around_median_block(addresses: Any, near: int, start: int, stop: int, pairs: Any, tile: Any, out: Any) -> None:
    """Write the mean of the `near` values of each column that lie closest to its median."""
    count = addresses.shape[0]
    for first in range(start, stop, tile.shape[1]):
        used = _load(addresses, first, stop, tile)
        _sort(tile, pairs)
        for k in range(used):
            median = 0.5 * np.float64(tile[(count - 1) // 2, k]) + 0.5 * np.float64(tile[count // 2, k])
            low = 0
            # The closest values are neighbours in sorted order; of two equally close, the smaller one stays.
            while low + near < count and median - tile[low, k] > tile[low + near, k] - median:
                low += 1
            total = 0.0
            for i in range(low, low + near):
                total += np.float64(tile[i, k]) / near
            out[first + k] = total


@njit(nogil=True, cache=True)
def _exchange_tagged(low: Any, high: Any, low_tag: Any, high_tag: Any) -> None:
    for k in range(low.shape[0]):
        a, b, s, t = low[k], high[k], low_tag[k], high_tag[k]
        swap = (b < a) | ((b == a) & (t < s))
        low[k] = b if swap else a
        high[k] = a if swap else b
        low_tag[k] = t if swap else s
        high_tag[k] = s if swap else t


@njit(nogil=True, cache=True)
def _sort_tagged(tile: Any, tags: Any, pairs: Any) -> None:
    for i in range(tile.shape[0]):
        tags[i, :] = i
    for c in range(pairs.shape[0]):
        i, j = pairs[c, 0], pairs[c, 1]
        _exchange_tagged(tile[i], tile[j], tags[i], tags[j])


@njit(nogil=True, cache=True)
def weighted_median_block(
    addresses: Any, weights: Any, start: int, stop: int, pairs: Any, tile: Any, tags: Any, out: Any
) -> None:
    """Write each column's least value at which the running weight reaches half; at just half, its mean with next."""
    count = addresses.shape[0]
    whole = 0.0
    for i in range(count):
        whole += weights[i]
    half = whole / 2
    for first in range(start, stop, tile.shape[1]):
        used = _load(addresses, first, stop, tile)
        _sort_tagged(tile, tags, pairs)
        for k in range(used):
            place = 0
            running = weights[tags[0, k]]
            # Rounding may leave the whole sum just below what it was in another order: the last row is the end.
            while running < half and place < count - 1:
                place += 1
                running += weights[tags[place, k]]
            value = np.float64(tile[place, k])
            if running == half and place < count - 1:
                value = 0.5 * value + 0.5 * np.float64(tile[place + 1, k])
            out[first + k] = value


@njit(nogil=True, cache=True)
def _quantile(level: float, tile: Any, ranks: Any, k: int) -> Any:
    count = tile.shape[0]
    if level <= ranks[0]:
        return np.float64(tile[0, k])
    for i in range(1, count):
        if level <= ranks[i]:
            left, right = np.float64(tile[i - 1, k]), np.float64(tile[i, k])
            if level == ranks[i] or left == right:
                return right
            part = (level - ranks[i - 1]) / (ranks[i] - ranks[i - 1])
            return left * (1.0 - part) + right * part
    return np.float64(tile[count - 1, k])


@njit(nogil=True, cache=True)
def weighted_trimmed_mean_block(
    addresses: Any, weights: Any, beta: float, start: int, stop: int, pairs: Any, tile: Any, tags: Any, out: Any
) -> None:
    """Write each column's weighted mean of the values strictly between its beta and 1 - beta weighted quantiles."""
    count = addresses.shape[0]
    ranks = np.empty(count)
    whole = 0.0
    for i in range(count):
        whole += weights[i]
    for first in range(start, stop, tile.shape[1]):
        used = _load(addresses, first, stop, tile)
        _sort_tagged(tile, tags, pairs)
        for k in range(used):
            running = 0.0
            for i in range(count):
                weight = weights[tags[i, k]]
                running += weight
                ranks[i] = (running - weight / 2) / whole
            low = _quantile(beta, tile, ranks, k)
            high = _quantile(1.0 - beta, tile, ranks, k)
            inside = 0.0
            total = 0.0
            for i in range(count):
                value = np.float64(tile[i, k])
                if low < value < high:
                    weight = weights[tags[i, k]]
                    inside += weight
                    total += value * weight
            out[first + k] = total / inside if inside > 0.0 else 0.5 * low + 0.5 * high
