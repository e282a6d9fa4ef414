"""Sorting networks: which pairs of rows to compare so that every column ends up sorted.

A network does the same comparisons whatever the data, so one comparison is a vector minimum and a vector maximum over a
whole tile of columns. Batcher's odd-even merge sort gives the pairs; those that no wanted rank depends on are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np
import numpy.typing as npt


def _batcher(count: int) -> list[tuple[int, int]]:
    """Return the comparators of Batcher's odd-even merge sort for any count (Knuth, TAOCP 5.2.2, algorithm M)."""
    pairs: list[tuple[int, int]] = []
    top = 1 << max(count - 1, 1).bit_length() - 1
    p = top
    while p > 0:
        q, r, distance = top, 0, p
        while True:
            pairs.extend((i, i + distance) for i in range(count - distance) if i & p == r)
            if q == p:
                break
            distance, q, r = q - p, q >> 1, p
        p >>= 1
    return pairs


@lru_cache(maxsize=128)
def _network(count: int, ranks: tuple[int, ...]) -> npt.NDArray[np.intp]:
    wanted = set(ranks)
    chosen: list[tuple[int, int]] = []
    for low, high in reversed(_batcher(count)):
        if low in wanted or high in wanted:
            chosen.append((low, high))
            wanted |= {low, high}
    pairs = np.array(chosen[::-1], dtype=np.intp).reshape(-1, 2)
    pairs.flags.writeable = False
    return pairs


def sorting_network(count: int, ranks: Iterable[int]) -> npt.NDArray[np.intp]:
    """Return the (comparisons, 2) pairs that bring each wanted rank into its row; other rows end in any order."""
    return _network(count, tuple(sorted(set(ranks))))
