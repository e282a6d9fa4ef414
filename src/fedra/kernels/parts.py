"""What kernels ask of rows: a range of columns in memory, part by part, whoever has to bring it there.

Rows in memory are one part; rows of which a part at a time is loaded, from files for instance, are several. A kernel
gets the same bits from both: parts are cut where its tiles are cut, and follow one another in order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Positions = npt.NDArray[np.intp]


class Part(NamedTuple):
    """Columns start..stop of all rows, as compiled loops count them, and the vector that takes their results.

    `like` is an empty array of the type that lies at the addresses.
    """

    addresses: npt.NDArray[np.uintp]
    start: int
    stop: int
    like: npt.NDArray[Any]
    out: Any = None


class PairGroup(NamedTuple):
    """Some pairs of rows: `which` of all pairs they are, the rows they are of, and the pairs as places among those."""

    which: Positions | slice
    rows: Positions
    pairs: npt.NDArray[np.intp]


def groups_of(count: int, size: int) -> list[Positions]:
    """Return the positions 0 .. count-1 in groups of at most `size`, one of them at least."""
    every = np.arange(count)
    return [every[first : first + max(1, size)] for first in range(0, count, max(1, size))]


def pair_groups(pairs: npt.NDArray[np.intp], count: int, size: int) -> Iterator[PairGroup]:
    """Yield the pairs of `count` rows in groups that are of at most `size` rows each, two of them at least."""
    of_group = np.arange(count) // max(1, size // 2)
    for first, second in sorted({(a, b) for a, b in of_group[pairs].tolist()}):
        which = np.flatnonzero((of_group[pairs] == (first, second)).all(axis=1))
        rows, places = np.unique(pairs[which], return_inverse=True)
        yield PairGroup(which, rows, places.reshape(-1, 2))
