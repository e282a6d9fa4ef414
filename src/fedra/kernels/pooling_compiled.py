"""Compiled loops over the windows of images whose channels lie together: the greatest of a window, and the way back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from fedra.kernels.wide import apart_in_memory

NOBODY = 4
"""The winner of a window in which nothing is above zero."""


@njit(nogil=True, cache=True)
def _pool_window(first: Any, second: Any, third: Any, fourth: Any, out: Any, winners: Any) -> None:
    apart_in_memory()
    zero = out.dtype.type(0)
    for k in range(out.shape[0]):
        # As torch does: the first of equals, and a NaN whatever stands beside it.
        most, winner = first[k], np.int8(0)
        wins = (second[k] > most) | (second[k] != second[k])
        most, winner = second[k] if wins else most, np.int8(1) if wins else winner
        wins = (third[k] > most) | (third[k] != third[k])
        most, winner = third[k] if wins else most, np.int8(2) if wins else winner
        wins = (fourth[k] > most) | (fourth[k] != fourth[k])
        most, winner = fourth[k] if wins else most, np.int8(3) if wins else winner
        out[k] = zero if most < zero else most
        winners[k] = np.int8(NOBODY) if most <= zero else winner


@njit(nogil=True, cache=True)
def pool_images(images: Any, out: Any, winners: Any) -> None:
    """Write the greatest value of each window of two by two, at least zero, and which of the four it was."""
    for i in range(out.shape[0]):
        for row in range(out.shape[1]):
            above, below = images[i, 2 * row], images[i, 2 * row + 1]
            for column in range(out.shape[2]):
                left, right = 2 * column, 2 * column + 1
                _pool_window(
                    above[left], above[right], below[left], below[right], out[i, row, column], winners[i, row, column]
                )


@njit(nogil=True, cache=True)
def _spread_window(values: Any, winners: Any, first: Any, second: Any, third: Any, fourth: Any) -> None:
    apart_in_memory()
    zero = values.dtype.type(0)
    for k in range(values.shape[0]):
        value, winner = values[k], winners[k]
        first[k] = value if winner == 0 else zero
        second[k] = value if winner == 1 else zero
        third[k] = value if winner == 2 else zero
        fourth[k] = value if winner == 3 else zero


@njit(nogil=True, cache=True)
def spread_windows(values: Any, winners: Any, out: Any) -> None:
    """Write each window's value to where its winner stood, and zero to the rest of the window."""
    for i in range(values.shape[0]):
        for row in range(values.shape[1]):
            above, below = out[i, 2 * row], out[i, 2 * row + 1]
            for column in range(values.shape[2]):
                left, right = 2 * column, 2 * column + 1
                value, winner = values[i, row, column], winners[i, row, column]
                _spread_window(value, winner, above[left], above[right], below[left], below[right])
