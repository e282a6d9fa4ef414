"""Compiled loops that go once over memory: weighted sums, columns' moments, the largest magnitude of each row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from fedra.kernels.pointers import row_part, write_part
from fedra.kernels.wide import prefer_wide_vectors


@njit(nogil=True, cache=True, fastmath={"contract"})
def _add_four(sums: Any, a: Any, b: Any, c: Any, d: Any, weights: Any) -> None:
    w0, w1, w2, w3 = weights[0], weights[1], weights[2], weights[3]
    for k in range(sums.shape[0]):
        sums[k] += w0 * np.float64(a[k]) + w1 * np.float64(b[k]) + w2 * np.float64(c[k]) + w3 * np.float64(d[k])


@njit(nogil=True, cache=True, fastmath={"contract"})
def weighted_sum_block(addresses: Any, weights: Any, start: int, stop: int, buffer: Any, out: Any) -> None:
    """Write sum_i w_i g_i over columns start..stop; four rows at a time, their number a multiple of four."""
    for first in range(start, stop, buffer.shape[0]):
        last = min(first + buffer.shape[0], stop)
        sums = buffer[: last - first]
        sums[:] = 0.0
        for i in range(0, addresses.shape[0], 4):
            a = row_part(addresses[i], first, last, out)
            b = row_part(addresses[i + 1], first, last, out)
            c = row_part(addresses[i + 2], first, last, out)
            d = row_part(addresses[i + 3], first, last, out)
            _add_four(sums, a, b, c, d, weights[i : i + 4])
        write_part(out, first, sums, last - first)


@njit(nogil=True, cache=True, fastmath={"contract"})
def _add_one(sums: Any, row: Any, weight: float) -> None:
    for k in range(sums.shape[0]):
        sums[k] += weight * np.float64(row[k])


@njit(nogil=True, cache=True, fastmath={"contract"})
def mixed_rows_block(addresses: Any, matrix: Any, start: int, stop: int, buffer: Any, out: Any) -> None:
    """Write sum_j matrix[i, j] g_j over columns start..stop, for every i."""
    for first in range(start, stop, buffer.shape[0]):
        last = min(first + buffer.shape[0], stop)
        sums = buffer[: last - first]
        for i in range(matrix.shape[0]):
            sums[:] = 0.0
            for j in range(matrix.shape[1]):
                if matrix[i, j] != 0.0:
                    _add_one(sums, row_part(addresses[j], first, last, out[0]), matrix[i, j])
            write_part(out[i], first, sums, last - first)


@njit(nogil=True, cache=True, fastmath={"contract"})
def moments_block(addresses: Any, start: int, stop: int, tile: int, like: Any, mean: Any, deviation: Any) -> None:
    """Write each column's mean and standard deviation (ddof=1) over columns start..stop.

    A tile of all rows stays in cache for its second reading; `like` tells the rows' type.
    """
    count = addresses.shape[0]
    for first in range(start, stop, tile):
        last = min(first + tile, stop)
        means, squares = mean[first:last], deviation[first:last]
        means[:] = 0.0
        squares[:] = 0.0
        for i in range(count):
            row = row_part(addresses[i], first, last, like)
            for k in range(last - first):
                means[k] += np.float64(row[k])
        for k in range(last - first):
            means[k] /= count
        for i in range(count):
            row = row_part(addresses[i], first, last, like)
            for k in range(last - first):
                away = np.float64(row[k]) - means[k]
                squares[k] += away * away
        for k in range(last - first):
            squares[k] = np.sqrt(squares[k] / (count - 1)) if count > 1 else 0.0


@njit(nogil=True, cache=True)
def largest_bits(addresses: Any, start: int, stop: int, mask: Any, largest: Any) -> None:
    """Raise `largest` to each row's greatest magnitude over columns start..stop, as the float's bits without sign.

    Without its sign bit a float orders like the integer of its bits, with infinity above all numbers and NaN above
    infinity: one integer maximum finds the magnitude and whatever is not finite. Four rows at a time, because one
    stream of reads does not fill the memory's bandwidth.
    """
    prefer_wide_vectors()
    narrow = largest.dtype.type  # Numba takes what comes of two 32-bit numbers for 64 bits wide
    count = addresses.shape[0]
    whole = count - count % 4
    for i in range(0, whole, 4):
        a = row_part(addresses[i], start, stop, largest)
        b = row_part(addresses[i + 1], start, stop, largest)
        c = row_part(addresses[i + 2], start, stop, largest)
        d = row_part(addresses[i + 3], start, stop, largest)
        most_a, most_b, most_c, most_d = largest[i], largest[i + 1], largest[i + 2], largest[i + 3]
        for k in range(stop - start):
            most_a = max(most_a, narrow(a[k] & mask))
            most_b = max(most_b, narrow(b[k] & mask))
            most_c = max(most_c, narrow(c[k] & mask))
            most_d = max(most_d, narrow(d[k] & mask))
        largest[i], largest[i + 1], largest[i + 2], largest[i + 3] = most_a, most_b, most_c, most_d
    for i in range(whole, count):
        row = row_part(addresses[i], start, stop, largest)
        most = largest[i]
        for k in range(stop - start):
            most = max(most, narrow(row[k] & mask))
        largest[i] = most
