"""Distances between updates: pairwise L1 and squared L2, norms, distances to a weighted mean or a point.

Differences are taken before anything is squared or added, so that updates that lie close together keep all their
digits; in float32 a sum runs over one tile of columns, in float64 across tiles.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fedra.kernels.rows import Rows, as_rows
from fedra.kernels.threads import column_blocks

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


def _pairwise(rows: Rows, *, squared: bool, threads: int | None) -> Floats:
    from fedra.kernels import distances_compiled as compiled

    count = len(rows)
    padded = -(-count // 3) * 3
    blocks = column_blocks(rows.dimension, compiled.TILE)
    arithmetic = np.dtype(np.float64) if rows.dimension <= _SHORT else rows.dtype
    one = arithmetic.type(1.0)
    like = np.empty(0, dtype=rows.dtype)

    def work(start: int, stop: int) -> Floats:
        sums = np.zeros((padded, padded))
        tile = np.zeros((padded, compiled.TILE), dtype=arithmetic)
        for part in rows.parts(start, stop, compiled.TILE):
            compiled.pairwise_block(part.addresses, part.start, part.stop, one, squared, like, tile, sums)
        return sums

    total = np.zeros((padded, padded))
    for partial in rows.over(work, blocks, threads):
        total += partial
    upper = np.triu(total[:count, :count], k=1)
    if arithmetic == np.float32:
        _mend(upper, rows, blocks, squared=squared, threads=threads)
    return upper + upper.T


def _mend(upper: Floats, rows: Rows, blocks: list[tuple[int, int]], *, squared: bool, threads: int | None) -> None:
    """Take again, in float64 throughout, the few pairs whose float32 sums over- or underflowed."""
    from fedra.kernels import distances_compiled as compiled

    first, second = np.triu_indices(len(rows), k=1)
    values = upper[first, second]
    doubtful = ~(_trusted(values, rows.dimension) if squared else np.isfinite(values))
    if not doubtful.any():
        return
    pairs = np.column_stack([first[doubtful], second[doubtful]])
    like = np.empty(0, dtype=rows.dtype)

    def work(start: int, stop: int) -> Floats:
        # Pairs within column ranges, not the other way round: the range of all rows stays in cache.
        sums = np.empty(len(pairs))
        for group in rows.pair_groups(pairs, stop - start):
            some = np.empty(len(group.pairs))
            for part in rows.take(group.rows).parts(start, stop, stop - start):
                compiled.pairs_block(part.addresses, group.pairs, part.start, part.stop, squared, like, some)
            sums[group.which] = some
        return sums

    upper[pairs[:, 0], pairs[:, 1]] = sum(rows.over(work, blocks, threads), start=np.zeros(len(pairs)))


def norms(updates: Any, threads: int | None = None) -> Floats:
    """Return each update's L2 norm."""
    from fedra.kernels import distances_compiled as compiled

    rows = as_rows(updates)
    like = np.empty(0, dtype=rows.dtype)

    def work(start: int, stop: int) -> Floats:
        sums = np.zeros(len(rows))
        for group in rows.groups(stop - start):
            some = np.zeros(len(group))
            for part in rows.take(group).parts(start, stop, stop - start):
                compiled.squared_norms_block(part.addresses, part.start, part.stop, like, some)
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

    like = np.empty(0, dtype=rows.dtype)
    heaviest = int(np.argmax(weights)) if len(rows) else 0

    def work(start: int, stop: int) -> Floats:
        sums = np.zeros(len(rows))
        buffer = np.empty(_CENTRE_TILE, dtype=weights.dtype)
        for part in rows.parts(start, stop, _CENTRE_TILE):
            compiled.squared_to_mean_block(part.addresses, weights, heaviest, part.start, part.stop, like, buffer, sums)
        return sums

    blocks = column_blocks(rows.dimension, _CENTRE_TILE)
    return sum(rows.over(work, blocks, threads), start=np.zeros(len(rows)))


def _trusted(squares: Floats, dimension: int) -> npt.NDArray[np.bool_]:
    """Tell which sums of float32 squares neither overflowed nor may have lost squares to underflow."""
    return np.isfinite(squares) & (squares >= _LEAST_MEAN_SQUARE * dimension)
