"""Compiled loops for Krum scored anew after each pick: sums of nearest distances, kept up to date as clients leave.

A score is the sum of a client's k least distances to those still there. When one leaves, each other loses that distance
or the largest it counted. The running sums are kept as two floats each, exact to some thirty digits; whose score
rounds to the least is decided by adding up anew, the way NumPy does, for the few that are too close to call.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

_PAIRWISE = 128
# Relative errors: of a sum by `added_up` (30 roundings, with room to spare), and of one step of a running sum.
_ROUNDING = 2.0**-46
_STEP = 2.0**-100
# A running sum is made anew once its error may be more than this part of it.
_LARGEST_ERROR = 2.0**-60


@njit(nogil=True, cache=True)
def _added_up_short(values: Any, start: int, count: int) -> Any:
    if count < 8:
        total = 0.0
        for i in range(start, start + count):
            total += values[i]
        return total
    r0, r1, r2, r3 = values[start], values[start + 1], values[start + 2], values[start + 3]
    r4, r5, r6, r7 = values[start + 4], values[start + 5], values[start + 6], values[start + 7]
    whole = count - count % 8
    for i in range(start + 8, start + whole, 8):
        r0 += values[i]
        r1 += values[i + 1]
        r2 += values[i + 2]
        r3 += values[i + 3]
        r4 += values[i + 4]
        r5 += values[i + 5]
        r6 += values[i + 6]
        r7 += values[i + 7]
    total = ((r0 + r1) + (r2 + r3)) + ((r4 + r5) + (r6 + r7))
    for i in range(start + whole, start + count):
        total += values[i]
    return total


@njit("float64(float64[::1], int64, int64)", nogil=True, cache=True)
def added_up(values: Any, start: int, count: int) -> Any:
    """Return the sum of `count` values from `start` on, to the bit as ``np.sum`` does it: by halves of halves."""
    if count <= _PAIRWISE:
        return _added_up_short(values, start, count)
    half = count // 2
    half -= half % 8
    return added_up(values, start, half) + added_up(values, start + half, count - half)


@njit(nogil=True, cache=True)
def _add(high: Any, low: Any, i: int, value: float) -> None:
    """Add a value to the sum ``high[i] + low[i]``, keeping what rounding takes from the first (Knuth's two-sum)."""
    total = high[i] + value
    back = total - high[i]
    error = (high[i] - (total - back)) + (value - back)
    rest = low[i] + error
    high[i] = total + rest
    low[i] = rest - (high[i] - total)


@njit(nogil=True, cache=True)
def _score(distances: Any, order: Any, there: Any, i: int, neighbours: int, buffer: Any) -> Any:
    """Return the sum of client i's `neighbours` least distances to those who are there."""
    count = 0
    place = 0
    while count < neighbours:
        j = order[i, place]
        if there[j] and j != i:
            buffer[count] = distances[i, j]
            count += 1
        place += 1
    return added_up(buffer, 0, neighbours)


@njit(nogil=True, cache=True)
def _begin(
    distances: Any, order: Any, there: Any, i: int, neighbours: int, high: Any, low: Any, edge: Any, error: Any
) -> None:
    """Make client i's running sum anew; `edge` is the place in its order of the last distance counted, -1: none."""
    high[i] = 0.0
    low[i] = 0.0
    edge[i] = -1
    count = 0
    place = 0
    while count < neighbours:
        j = order[i, place]
        if there[j] and j != i:
            _add(high, low, i, distances[i, j])
            edge[i] = place
            count += 1
        place += 1
    error[i] = _STEP * high[i] * (neighbours + 1)


@njit(nogil=True, cache=True)
def _leave(
    distances: Any, order: Any, ranks: Any, there: Any, i: int, gone: int, change: int, high: Any, low: Any, edge: Any
) -> None:
    """Take a client who left out of client i's sum, whose number of neighbours changes by `change`, 0 or -1."""
    inside = ranks[i, gone] <= edge[i]
    place = edge[i]
    if inside:
        _add(high, low, i, -distances[i, gone])
    if inside and change == 0:
        place += 1
        while place < order.shape[1] and (not there[order[i, place]] or order[i, place] == i):
            place += 1
        _add(high, low, i, distances[i, order[i, place]])
        edge[i] = place
        return
    if not inside and change == -1:
        _add(high, low, i, -distances[i, order[i, place]])
        place -= 1
    # The edge is a client who is there and is counted.
    while place >= 0 and (not there[order[i, place]] or order[i, place] == i):
        place -= 1
    edge[i] = place


@njit(nogil=True, cache=True)
def repeated_picks(distances: Any, order: Any, ranks: Any, assumed: int, picks: Any) -> None:
    """Write whom Krum picks, one after the other, each scored among those still there; ties go to the first.

    `order` are the clients by their distance from each, `ranks` their places in it.
    """
    count = distances.shape[0]
    there = np.ones(count, dtype=np.bool_)
    high, low, error = np.empty(count), np.empty(count), np.empty(count)
    edge = np.empty(count, dtype=np.int64)
    buffer = np.empty(count)
    neighbours = min(max(1, count - assumed - 2), count - 1)
    for i in range(count):
        _begin(distances, order, there, i, neighbours, high, low, edge, error)
    for pick in range(picks.shape[0]):
        bound = np.inf
        for i in range(count):
            if there[i]:
                bound = min(bound, (high[i] + error[i]) * (1.0 + _ROUNDING))
        best, least = -1, np.inf
        for i in range(count):
            if there[i] and (high[i] - error[i]) * (1.0 - _ROUNDING) <= bound:
                score = _score(distances, order, there, i, neighbours, buffer)
                if best < 0 or score < least:
                    best, least = i, score
        picks[pick] = best
        there[best] = False
        left = count - pick - 1
        fewer = min(max(1, left - assumed - 2), left - 1)
        for i in range(count):
            if there[i] and fewer >= 0:
                largest = high[i]
                _leave(distances, order, ranks, there, i, best, fewer - neighbours, high, low, edge)
                error[i] += 2.0 * _STEP * largest
                if error[i] > _LARGEST_ERROR * high[i]:
                    _begin(distances, order, there, i, fewer, high, low, edge, error)
        neighbours = fewer
