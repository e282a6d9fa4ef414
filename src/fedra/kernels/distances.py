"""Distances between updates: pairwise L1 and squared L2, norms, distances to a weighted mean or a point.

Differences are taken before anything is squared or added, so that updates that lie close together keep all their
digits; in float32 a sum runs over one tile of columns, in float64 across tiles.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fedra.kernels.rows import Rows, as_rows
from fedra.kernels.threads import column_blocks, in_order, thread_count

Floats = npt.NDArray[np.float64]

_CENTRE_TILE = 1024
# Below this mean squared difference some float32 squares fall under the smallest normal number.
_LEAST_MEAN_SQUARE = 1e-28
# Up to here few tiles share the rounding of float32 sums, and float64 costs little.
_SHORT = 4096


def pairwise_l1(updates: Any, threads: int | None = None) -> Floats:
    """Return the (n, n) matrix of L1 distances between updates: ``D[i, j] = sum_k |g_ik - g_jk|``."""
    return _pairwise(as_rows(updates), squared=False, threads=threads)


def pairwise_squared_l2(updates: Any, threads: int | None = None) -> Floats:
    """Return the (n, n) matrix of squared L2 distances between updates: ``D[i, j] = sum_k (g_ik - g_jk)^2``."""
    return _pairwise(as_rows(updates), squared=True, threads=threads)


@dataclass(frozen=True, eq=False)
class Triangle:
    """Distances between n updates without those that mirror others: half of the memory of a matrix.

    Panels of rows follow one another, each with the columns from its own first row on.
    """

    count: int
    height: int
    panels: tuple[Floats, ...]

    def __len__(self) -> int:
        return self.count

    def rows(self, first: int, stop: int) -> Floats:
        """Return rows first..stop of the whole matrix."""
        found = np.empty((stop - first, self.count))
        for number, panel in enumerate(self.panels[: -(-stop // self.height)]):
            begin = number * self.height
            low, high = max(first, begin), min(stop, begin + len(panel))
            if low < high:
                found[low - first : high - first, begin:] = panel[low - begin : high - begin]
            start = max(first, begin + len(panel))
            if start < stop:
                found[start - first :, begin : begin + len(panel)] = panel[:, start - begin : stop - begin].T
        return found

    def blocks(self, height: int = 256) -> Iterator[tuple[int, Floats]]:
        """Yield the matrix in blocks of rows, each with the number of its first row."""
        for first in range(0, self.count, height):
            yield first, self.rows(first, min(first + height, self.count))


def squared_l2_triangle(updates: Any, threads: int | None = None) -> Triangle:
    """Return squared L2 distances between updates, the same bits as `pairwise_squared_l2` in half of the memory."""
    from fedra.kernels.distances_compiled import PANEL

    rows = as_rows(updates)
    return Triangle(len(rows), PANEL, tuple(panel for _, panel in _panels(rows, squared=True, threads=threads)))


def _pairwise(rows: Rows, *, squared: bool, threads: int | None) -> Floats:
    distances = np.empty((len(rows), len(rows)))
    for first, panel in _panels(rows, squared=squared, threads=threads):
        stop = first + len(panel)
        distances[first:stop, first:] = panel
        distances[stop:, first:stop] = panel[:, stop - first :].T
    return distances


def _panels(rows: Rows, *, squared: bool, threads: int | None) -> Iterator[tuple[int, Floats]]:
    """Yield distances of some rows to themselves and all after them, with the number of the first of these rows."""
    from fedra.kernels import distances_compiled as compiled

    count = len(rows)
    blocks = column_blocks(rows.dimension, compiled.TILE)
    arithmetic = np.dtype(np.float64) if rows.dimension <= _SHORT else rows.dtype
    one = arithmetic.type(1.0)

    def panel(begin: int, threads: int | None) -> tuple[int, Floats]:
        # Those before it have been compared with all: where rows are files, they are not read again.
        left = rows.take(np.arange(begin, count)) if begin else rows
        size = min(compiled.PANEL, len(left))
        own = _threefold(size)
        shape = (own, own + _threefold(len(left) - size))

        def work(start: int, stop: int) -> Floats:
            sums = np.zeros(shape)
            tile = np.zeros((own + compiled.ACROSS, compiled.TILE), dtype=arithmetic)
            for part in left.parts(start, stop, compiled.TILE, stored=True):
                compiled.pairwise_block(
                    part.addresses, 0, size, part.start, part.stop, one, squared, part.like, tile, sums
                )
            return sums

        total = np.zeros(shape)
        for partial in left.over(work, blocks, threads):
            total += partial
        found = np.ascontiguousarray(total[:size, : len(left)])
        if arithmetic == np.float32:
            _mend(found, left, blocks, squared=squared, threads=threads)
        corner = np.triu(found[:, :size], k=1)
        found[:, :size] = corner + corner.T
        return begin, found

    begins = range(0, count, compiled.PANEL)
    # Threads share the columns of a panel, or panels where there are too few columns: the sums are the same.
    if rows.one_pass_at_a_time or len(blocks) >= thread_count(threads):
        yield from (panel(begin, threads) for begin in begins)
    else:
        yield from in_order(lambda begin: panel(begin, 1), begins, threads)


def _threefold(count: int) -> int:
    return -(-count // 3) * 3


def _mend(panel: Floats, rows: Rows, blocks: list[tuple[int, int]], *, squared: bool, threads: int | None) -> None:
    """Take again, in float64 throughout, the few pairs whose float32 sums over- or underflowed."""
    from fedra.kernels import distances_compiled as compiled

    doubtful = ~(_trusted(panel, rows.dimension) if squared else np.isfinite(panel))
    doubtful &= np.arange(panel.shape[1]) > np.arange(len(panel))[:, np.newaxis]
    if not doubtful.any():
        return
    pairs = np.argwhere(doubtful)

    def work(start: int, stop: int) -> Floats:
        # Pairs within column ranges, not the other way round: the range of all rows stays in cache.
        sums = np.empty(len(pairs))
        for group in rows.pair_groups(pairs, stop - start):
            some = np.empty(len(group.pairs))
            for part in rows.take(group.rows).parts(start, stop, stop - start):
                compiled.pairs_block(part.addresses, group.pairs, part.start, part.stop, squared, part.like, some)
            sums[group.which] = some
        return sums

    panel[pairs[:, 0], pairs[:, 1]] = sum(rows.over(work, blocks, threads), start=np.zeros(len(pairs)))


def norms(updates: Any, threads: int | None = None) -> Floats:
    """Return each update's L2 norm."""
    from fedra.kernels import distances_compiled as compiled

    rows = as_rows(updates)

    def work(start: int, stop: int) -> Floats:
        sums = np.zeros(len(rows))
        for group in rows.groups(stop - start):
            some = np.zeros(len(group))
            for part in rows.take(group).parts(start, stop, stop - start):
                compiled.squared_norms_block(part.addresses, part.start, part.stop, part.like, some)
            sums[group] = some
        return sums

    blocks = column_blocks(rows.dimension, _CENTRE_TILE)
    return np.sqrt(sum(rows.over(work, blocks, threads), start=np.zeros(len(rows))))


def distances_to_mean(updates: Any, weights: npt.ArrayLike, threads: int | None = None) -> Floats:
    """Return each update's L2 distance to the weighted mean ``sum_i w_i g_i``; the weights add up to 1."""
    rows = as_rows(updates)
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (len(rows),):
        raise ValueError(f"weights of shape {weights.shape} for {len(rows)} rows; give one number for each row")
    if rows.dtype == np.float32 and rows.dimension > _SHORT:
        squares = _squared_to_mean(rows, weights.astype(np.float32), threads)
        if _trusted(squares, rows.dimension).all():
            return np.sqrt(squares)
    return np.sqrt(_squared_to_mean(rows, weights, threads))


def distances_to_point(updates: Any, point: npt.NDArray[Any], threads: int | None = None) -> Floats:
    """Return each update's L2 distance to a point, which is taken in the updates' type."""
    rows = as_rows(updates).with_row(point)
    weights = np.zeros(len(rows))
    weights[-1] = 1.0
    return distances_to_mean(rows, weights, threads)[:-1]


def _squared_to_mean(rows: Rows, weights: npt.NDArray[Any], threads: int | None) -> Floats:
    from fedra.kernels import distances_compiled as compiled

    heaviest = int(np.argmax(weights)) if len(rows) else 0

    def work(start: int, stop: int) -> Floats:
        sums = np.zeros(len(rows))
        buffer = np.empty(_CENTRE_TILE, dtype=weights.dtype)
        for part in rows.parts(start, stop, _CENTRE_TILE):
            compiled.squared_to_mean_block(
                part.addresses, weights, heaviest, part.start, part.stop, part.like, buffer, sums
            )
        return sums

    blocks = column_blocks(rows.dimension, _CENTRE_TILE)
    return sum(rows.over(work, blocks, threads), start=np.zeros(len(rows)))


def _trusted(squares: Floats, dimension: int) -> npt.NDArray[np.bool_]:
    """Tell which sums of float32 squares neither overflowed nor may have lost squares to underflow."""
    return np.isfinite(squares) & (squares >= _LEAST_MEAN_SQUARE * dimension)
