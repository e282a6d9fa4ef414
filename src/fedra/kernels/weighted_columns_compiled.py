"""Compiled loops for weighted statistics of each column: values are sorted together with the rows they come from.

Equal values are ordered by row. A float32 widened to float64 leaves 29 bits of its fraction free: there the row's tag
goes, and one minimum and maximum moves value and tag together. Float64 has no bits to spare, so its tags are numbers
in a tile of their own. A tag is twice the row's position, and one more where the value was -0.0: the network itself
cannot tell zeros apart, and they come out with the sign that their row had.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from fedra.kernels.halves_compiled import widened
from fedra.kernels.networks_compiled import sort_columns, sort_tagged_columns
from fedra.kernels.pointers import fetch_ahead, row_part, write_part
from fedra.kernels.scalars import bits_of, chosen, from_bits, looked_up, one_if
from fedra.kernels.wide import apart_in_memory, prefer_wide_vectors

_TAG = np.int64((1 << 29) - 1)
_SIGN = np.int64(-(1 << 63))


@njit(nogil=True, cache=True)
def _pack(row: Any, tag: int, tag_below_zero: int, target: Any) -> None:
    """Write a row's values with its tag in their last bits; of negative numbers the one with larger bits is less."""
    prefer_wide_vectors()
    apart_in_memory()
    for k in range(row.shape[0]):
        bits = bits_of(np.float64(widened(row[k])))
        signed = bits | chosen(bits < 0, tag_below_zero, tag)
        target[k] = from_bits(chosen(bits == _SIGN, tag | 1, signed))


@njit(nogil=True, cache=True)
def load_packed(addresses: Any, first: int, stop: int, like: Any, tile: Any) -> Any:
    """Fill a tile with the float32 columns from `first` on, and return how many there are."""
    count = addresses.shape[0]
    used = min(tile.shape[1], stop - first)
    for i in range(count):
        row = row_part(addresses[i], first, first + used, like)
        fetch_ahead(addresses[i], i, first, stop, tile.shape[1], like)
        _pack(row, np.int64(2 * i), np.int64(2 * (count + count - 1 - i)), tile[i])
    return used


@njit(nogil=True, cache=True)
def _tag(row: Any, tag: float, values: Any, tags: Any) -> None:
    prefer_wide_vectors()
    apart_in_memory()
    for k in range(row.shape[0]):
        value = np.float64(widened(row[k]))
        values[k] = value + 0.0
        tags[k] = tag + one_if(bits_of(value) == _SIGN)


@njit(nogil=True, cache=True)
def load_tagged(addresses: Any, first: int, stop: int, like: Any, tile: Any, tags: Any) -> Any:
    """Fill a tile and its tags with the columns from `first` on, and return how many there are."""
    used = min(tile.shape[1], stop - first)
    for i in range(addresses.shape[0]):
        row = row_part(addresses[i], first, first + used, like)
        fetch_ahead(addresses[i], i, first, stop, tile.shape[1], like)
        _tag(row, np.float64(2 * i), tile[i], tags[i])
    return used


@njit(nogil=True, cache=True)
def _weigh_packed(row: Any, table: Any, weights: Any) -> None:
    for k in range(row.shape[0]):
        weights[k] = looked_up(table, bits_of(row[k]) & _TAG)


@njit(nogil=True, cache=True)
def _unpack(row: Any) -> None:
    prefer_wide_vectors()
    for k in range(row.shape[0]):
        bits = bits_of(row[k])
        row[k] = from_bits((bits & ~_TAG) | (bits << 63))


@njit(nogil=True, cache=True)
def _weigh_tagged(tags: Any, table: Any, weights: Any) -> None:
    for k in range(tags.shape[0]):
        weights[k] = looked_up(table, np.int64(tags[k]))


@njit(nogil=True, cache=True)
def _sign_zeros(row: Any, tags: Any) -> None:
    prefer_wide_vectors()
    for k in range(row.shape[0]):
        row[k] = from_bits(bits_of(row[k]) | (np.int64(tags[k]) << 63))


@njit(nogil=True, cache=True)
def _sort(
    addresses: Any, table: Any, first: int, stop: int, steps: Any, like: Any, tile: Any, tags: Any, weights: Any
) -> Any:
    """Fill `tile` with sorted columns and `weights` with each value's weight; no tags: the rows are float32.

    `table` gives the weight of each tag; packed tags of negative values count on from 2n, in reverse.
    """
    if tags.shape[0] == 0:
        used = load_packed(addresses, first, stop, like, tile)
        sort_columns(tile, steps)
        for i in range(tile.shape[0]):
            _weigh_packed(tile[i], table, weights[i])
            _unpack(tile[i])
    else:
        used = load_tagged(addresses, first, stop, like, tile, tags)
        sort_tagged_columns(tile, tags, steps)
        for i in range(tile.shape[0]):
            _weigh_tagged(tags[i], table, weights[i])
            _sign_zeros(tile[i], tags[i])
    return used


@njit(nogil=True, cache=True)
def _count_below(running: Any, weights: Any, level: float, below: Any) -> None:
    """Add each value's weight to the running sum, put the sum in its place, and count the sums below the level."""
    prefer_wide_vectors()
    apart_in_memory()
    for k in range(running.shape[0]):
        total = running[k] + weights[k]
        running[k] = total
        weights[k] = total
        below[k] += one_if(total < level)


@njit(nogil=True, cache=True)
def weighted_median_block(
    addresses: Any,
    table: Any,
    half: float,
    start: int,
    stop: int,
    steps: Any,
    like: Any,
    tile: Any,
    tags: Any,
    weights: Any,
    work: Any,
    out: Any,
) -> None:
    """Write each column's least value at which the running weight reaches half; at just half, its mean with next."""
    prefer_wide_vectors()
    count = addresses.shape[0]
    running, below = work[0], work[1]
    for first in range(start, stop, tile.shape[1]):
        used = _sort(addresses, table, first, stop, steps, like, tile, tags, weights)
        running[:] = 0.0
        below[:] = 0.0
        for i in range(count):
            _count_below(running, weights[i], half, below)
        for k in range(used):
            # Rounding may leave the whole sum just below what it was in another order: the last row is the end.
            place = min(np.int64(below[k]), count - 1)
            value = tile[place, k]
            if weights[place, k] == half and place < count - 1:
                value = 0.5 * value + 0.5 * tile[place + 1, k]
            below[k] = value
        write_part(out, first, below, used)


@njit(nogil=True, cache=True)
def _count_ranks(
    running: Any, weights: Any, low: float, high: float, middles: Any, below_low: Any, below_high: Any
) -> None:
    """Add each value's weight to the running sum, note the sum at its middle, and count those below both levels."""
    prefer_wide_vectors()
    apart_in_memory()
    for k in range(running.shape[0]):
        total = running[k] + weights[k]
        running[k] = total
        middle = total - weights[k] / 2
        middles[k] = middle
        below_low[k] += one_if(middle < low)
        below_high[k] += one_if(middle < high)


@njit(nogil=True, cache=True)
def _surround(tile: Any, middles: Any, places: Any, around: Any) -> None:
    """Note the values on either side of each column's quantile, and their sums of weights.

    `places` are the first values that reach the level. The first value of all, and the last where none reaches it,
    stand on both sides.
    """
    count = tile.shape[0]
    for k in range(places.shape[0]):
        place = np.int64(places[k])
        right = min(place, count - 1)
        left = max(place - 1, 0)
        around[0, k] = tile[left, k]
        around[1, k] = tile[right, k]
        around[2, k] = middles[left, k]
        around[3, k] = middles[right, k]


@njit(nogil=True, cache=True, error_model="numpy")
def _interpolate(level: float, whole: float, left: Any, right: Any, before: Any, at: Any, quantiles: Any) -> None:
    prefer_wide_vectors()
    apart_in_memory()
    for k in range(quantiles.shape[0]):
        rank, rank_before = at[k] / whole, before[k] / whole
        part = (level - rank_before) / (rank - rank_before)
        between = left[k] * (1.0 - part) + right[k] * part
        quantiles[k] = chosen((level == rank) | (left[k] == right[k]), right[k], between)


@njit(nogil=True, cache=True)
def _add_between(row: Any, weights: Any, low: Any, high: Any, inside: Any, total: Any) -> None:
    prefer_wide_vectors()
    apart_in_memory()
    for k in range(row.shape[0]):
        value, weight = row[k], weights[k]
        between = (low[k] < value) & (value < high[k])
        inside[k] += chosen(between, weight, 0.0)
        total[k] += chosen(between, value * weight, 0.0)


@njit(nogil=True, cache=True, error_model="numpy")
def _divide(total: Any, inside: Any, low: Any, high: Any) -> None:
    """Turn sums into means; nothing inside: the middle of the quantiles."""
    prefer_wide_vectors()
    apart_in_memory()
    for k in range(total.shape[0]):
        total[k] = chosen(inside[k] > 0.0, total[k] / inside[k], 0.5 * low[k] + 0.5 * high[k])


@njit(nogil=True, cache=True)
def weighted_trimmed_mean_block(
    addresses: Any,
    table: Any,
    whole: float,
    levels: Any,
    start: int,
    stop: int,
    steps: Any,
    like: Any,
    tile: Any,
    tags: Any,
    weights: Any,
    middles: Any,
    work: Any,
    out: Any,
) -> None:
    """Write each column's weighted mean of the values strictly between its two weighted quantiles.

    `levels` holds both quantiles' levels, and the least sum of weights of which `whole` makes at least that level.
    """
    prefer_wide_vectors()
    count = addresses.shape[0]
    running, below_low, below_high, low, high, inside, total = (
        work[0],
        work[1],
        work[2],
        work[3],
        work[4],
        work[5],
        work[6],
    )
    around = work[7:]
    for first in range(start, stop, tile.shape[1]):
        used = _sort(addresses, table, first, stop, steps, like, tile, tags, weights)
        work[:] = 0.0
        for i in range(count):
            _count_ranks(running, weights[i], levels[1, 0], levels[1, 1], middles[i], below_low, below_high)
        _surround(tile, middles, below_low, around)
        _interpolate(levels[0, 0], whole, around[0], around[1], around[2], around[3], low)
        _surround(tile, middles, below_high, around)
        _interpolate(levels[0, 1], whole, around[0], around[1], around[2], around[3], high)
        for i in range(count):
            _add_between(tile[i], weights[i], low, high, inside, total)
        _divide(total, inside, low, high)
        write_part(out, first, total, used)
