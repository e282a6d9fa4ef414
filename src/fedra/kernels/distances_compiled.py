"""Compiled loops for distances between rows.

A tile of columns of a panel of rows is copied into a buffer that stays in the second-level cache, then others in turn,
and distances are taken for three rows against three at a time, so that each value loaded serves three differences.
Every pair goes through the same nine-accumulator loop (rows are padded to a multiple of three): equal rows therefore
get equal distances to the last bit, whatever their position.

fastmath without `nnan` and `ninf`: sums may be reordered, but a value that is not finite stays visible.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from fedra.kernels.halves_compiled import widened
from fedra.kernels.pointers import row_part
from fedra.kernels.wide import prefer_wide_vectors

TILE = 1024
# Rows of a panel, and rows that they are compared with at a time: multiples of three, and tiles of either, of 4 KiB a
# row, stay in a second-level cache of a MiB.
PANEL = 144
ACROSS = 48

_FAST = {"reassoc", "contract", "nsz"}


@njit(nogil=True, cache=True, fastmath=_FAST)
def _absolute_3x3(tile: Any, i: int, j: int, one: Any) -> Any:
    prefer_wide_vectors()
    # Multiplying by `one` (1.0, unknown to the compiler) makes each addition an fma, which runs on ports that the
    # subtraction and the absolute value leave idle.
    x0, x1, x2 = tile[i], tile[i + 1], tile[i + 2]
    y0, y1, y2 = tile[j], tile[j + 1], tile[j + 2]
    zero = one - one
    s00 = s01 = s02 = s10 = s11 = s12 = s20 = s21 = s22 = zero
    for k in range(tile.shape[1]):
        a0, a1, a2 = x0[k], x1[k], x2[k]
        b0, b1, b2 = y0[k], y1[k], y2[k]
        s00 += abs(a0 - b0) * one
        s01 += abs(a0 - b1) * one
        s02 += abs(a0 - b2) * one
        s10 += abs(a1 - b0) * one
        s11 += abs(a1 - b1) * one
        s12 += abs(a1 - b2) * one
        s20 += abs(a2 - b0) * one
        s21 += abs(a2 - b1) * one
        s22 += abs(a2 - b2) * one
    return s00, s01, s02, s10, s11, s12, s20, s21, s22


@njit(nogil=True, cache=True, fastmath=_FAST)
def _squared_3x3(tile: Any, i: int, j: int, one: Any) -> Any:
    prefer_wide_vectors()
    x0, x1, x2 = tile[i], tile[i + 1], tile[i + 2]
    y0, y1, y2 = tile[j], tile[j + 1], tile[j + 2]
    zero = one - one
    s00 = s01 = s02 = s10 = s11 = s12 = s20 = s21 = s22 = zero
    for k in range(tile.shape[1]):
        a0, a1, a2 = x0[k], x1[k], x2[k]
        b0, b1, b2 = y0[k], y1[k], y2[k]
        d00, d01, d02 = a0 - b0, a0 - b1, a0 - b2
        d10, d11, d12 = a1 - b0, a1 - b1, a1 - b2
        d20, d21, d22 = a2 - b0, a2 - b1, a2 - b2
        s00 += d00 * d00
        s01 += d01 * d01
        s02 += d02 * d02
        s10 += d10 * d10
        s11 += d11 * d11
        s12 += d12 * d12
        s20 += d20 * d20
        s21 += d21 * d21
        s22 += d22 * d22
    return s00, s01, s02, s10, s11, s12, s20, s21, s22


@njit(nogil=True, cache=True)
def _load(addresses: Any, begin: int, end: int, first: int, used: int, like: Any, tile: Any, place: int) -> None:
    """Copy columns of rows begin..end to the tile from row `place` on; what no row or column fills is zero."""
    for i in range(end - begin):
        row = row_part(addresses[begin + i], first, first + used, like)
        target = tile[place + i]
        for k in range(used):
            target[k] = widened(row[k])
        target[used:] = 0.0
    for i in range(end - begin, -(-(end - begin) // 3) * 3):
        tile[place + i, :] = 0.0


@njit(nogil=True, cache=True)
def _add_nine(tile: Any, i: int, j: int, one: Any, squared: bool, sums: Any, row: int, column: int) -> None:
    nine = _squared_3x3(tile, i, j, one) if squared else _absolute_3x3(tile, i, j, one)
    for r in range(3):
        for c in range(3):
            sums[row + r, column + c] += nine[3 * r + c]


@njit(nogil=True, cache=True)
def pairwise_block(
    addresses: Any,
    begin: int,
    end: int,
    start: int,
    stop: int,
    one: Any,
    squared: bool,
    like: Any,
    tile: Any,
    sums: Any,
) -> None:
    """Add the distances of rows begin..end to themselves and all rows after them, over columns start..stop.

    ``sums[i, j]`` is that of rows begin + i and begin + j; below the diagonal it is not used. Arithmetic is in the type
    of `tile`, whose first rows hold those of begin..end, a multiple of three, and the last `ACROSS` the others in turn.
    """
    prefer_wide_vectors()  # here too, because what is compiled into it takes its preference
    count = addresses.shape[0]
    own = tile.shape[0] - ACROSS
    for first in range(start, stop, tile.shape[1]):
        used = min(tile.shape[1], stop - first)
        _load(addresses, begin, end, first, used, like, tile, 0)
        for i in range(0, end - begin, 3):
            for j in range(i, end - begin, 3):
                _add_nine(tile, i, j, one, squared, sums, i, j)
        for others in range(end, count, ACROSS):
            last = min(others + ACROSS, count)
            _load(addresses, others, last, first, used, like, tile, own)
            for i in range(0, end - begin, 3):
                for j in range(0, last - others, 3):
                    _add_nine(tile, i, own + j, one, squared, sums, i, others - begin + j)


@njit(nogil=True, cache=True, fastmath=_FAST)
def _one_pair(first: int, second: int, start: int, stop: int, squared: bool, like: Any) -> float:
    """Return the distance of two rows over columns start..stop, each difference taken in float64."""
    x = row_part(first, start, stop, like)
    y = row_part(second, start, stop, like)
    total = 0.0
    if squared:
        for k in range(x.shape[0]):
            difference = np.float64(x[k]) - np.float64(y[k])
            total += difference * difference
    else:
        for k in range(x.shape[0]):
            total += abs(np.float64(x[k]) - np.float64(y[k]))
    return total


@njit(nogil=True, cache=True)
def pairs_block(addresses: Any, pairs: Any, start: int, stop: int, squared: bool, like: Any, sums: Any) -> None:
    """Write the distance of each pair of rows over columns start..stop, each difference taken in float64."""
    for p in range(pairs.shape[0]):
        sums[p] = _one_pair(addresses[pairs[p, 0]], addresses[pairs[p, 1]], start, stop, squared, like)


@njit(nogil=True, cache=True, fastmath=_FAST)
def squared_norms_block(addresses: Any, start: int, stop: int, like: Any, sums: Any) -> None:
    """Add the squared L2 norms over columns start..stop to `sums`."""
    for i in range(addresses.shape[0]):
        row = row_part(addresses[i], start, stop, like)
        total = 0.0
        for k in range(row.shape[0]):
            value = np.float64(row[k])
            total += value * value
        sums[i] += total


@njit(nogil=True, cache=True, fastmath=_FAST)
def _accumulate(centre: Any, weight: Any, row: Any, origin: Any) -> None:
    real = centre.dtype.type
    for k in range(centre.shape[0]):
        centre[k] += weight * (real(row[k]) - real(origin[k]))


# Said outright, or it would inherit its caller's: reordered to value - (origin + offset), this would lose the very
# digits that the origin is there to keep.
@njit(nogil=True, cache=True, fastmath={"contract"})
def _beside(value: Any, origin: Any, offset: Any) -> Any:
    return (value - origin) - offset


@njit(nogil=True, cache=True, fastmath=_FAST)
def _squared_to(centre: Any, row: Any, origin: Any) -> Any:
    real = centre.dtype.type
    total = real(0.0)
    for k in range(centre.shape[0]):
        difference = _beside(real(row[k]), real(origin[k]), centre[k])
        total += difference * difference
    return total


@njit(nogil=True, cache=True)
def squared_to_mean_block(
    addresses: Any, weights: Any, heaviest: int, start: int, stop: int, like: Any, buffer: Any, sums: Any
) -> None:
    """Add each row's squared distance to the weighted mean, over columns start..stop, in one pass over memory.

    The heaviest row is the origin: the mean then is a small offset from it, and keeps its digits even when that row
    has nearly all the weight. Arithmetic is in the type of `buffer` and `weights`.
    """
    count = addresses.shape[0]
    for first in range(start, stop, buffer.shape[0]):
        last = min(first + buffer.shape[0], stop)
        centre = buffer[: last - first]
        centre[:] = 0.0
        origin = row_part(addresses[heaviest], first, last, like)
        for i in range(count):
            if i != heaviest:
                _accumulate(centre, weights[i], row_part(addresses[i], first, last, like), origin)
        for i in range(count):
            sums[i] += _squared_to(centre, row_part(addresses[i], first, last, like), origin)
