"""Weighted sums of updates, moments of their coordinates, and the largest magnitude in each."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fedra.kernels.halves import BFLOAT16, widened
from fedra.kernels.rows import as_rows
from fedra.kernels.threads import column_blocks

_TILE = 2048
# All rows of a tile are read again for each sum: 50 rows of float32 fill 100 KiB, which the second cache holds.
MIXED_TILE = 512


def weighted_sum(updates: Any, weights: npt.ArrayLike, threads: int | None = None) -> npt.NDArray[Any]:
    """Return ``sum_i w_i g_i`` in the updates' type, summed in float64; rows of weight 0 are not read."""
    from fedra.kernels import sums_compiled as compiled

    rows = as_rows(updates)
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (len(rows),):
        raise ValueError(f"weights of shape {weights.shape} for {len(rows)} rows; give one number for each row")
    out = rows.new_vector()
    used = np.flatnonzero(weights)
    if not len(used):
        return out
    # Filled up to a multiple of four with a row that counts for nothing.
    filled = np.concatenate([used, np.full(-len(used) % 4, used[0])])
    rows = rows.take(filled)
    factors = weights[filled]
    factors[len(used) :] = 0.0

    def work(start: int, stop: int) -> None:
        sums = np.empty(_TILE)
        for part in rows.parts(start, stop, _TILE, out):
            compiled.weighted_sum_block(part.addresses, factors, part.start, part.stop, sums, part.out)

    for _ in rows.over(work, column_blocks(rows.dimension, _TILE), threads):
        pass
    return out


def mixed_rows(updates: Any, matrix: npt.ArrayLike, threads: int | None = None) -> Any:
    """Return ``matrix @ updates`` in the updates' type, (k, d) for a (k, n) matrix, summed in float64.

    A tile of all rows stays in cache while all k sums are made of it; entries of 0 are not read. Of rows that are not
    in memory the result is k rows that are not either.
    """
    from fedra.kernels import sums_compiled as compiled

    rows = as_rows(updates)
    factors = np.ascontiguousarray(matrix, dtype=np.float64)
    if factors.ndim != 2 or factors.shape[1] != len(rows):
        raise ValueError(f"a matrix of shape {factors.shape} for {len(rows)} rows; give (k, {len(rows)})")
    if (elsewhere := rows.mixed(factors)) is not None:
        return elsewhere
    out = np.zeros((len(factors), rows.dimension), dtype=rows.dtype)

    def work(start: int, stop: int) -> None:
        for part in rows.parts(start, stop, MIXED_TILE):
            compiled.mixed_rows_block(part.addresses, factors, part.start, part.stop, np.empty(MIXED_TILE), out)

    for _ in rows.over(work, column_blocks(rows.dimension, MIXED_TILE), threads):
        pass
    return out


def column_moments(updates: Any, threads: int | None = None) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return mean and standard deviation (ddof=1; one row: 0) of each coordinate, both in float64."""
    from fedra.kernels import sums_compiled as compiled

    rows = as_rows(updates)
    if not len(rows):
        raise ValueError("no rows; a mean needs at least one")
    mean, deviation = np.empty(rows.dimension), np.empty(rows.dimension)

    def work(start: int, stop: int) -> None:
        part = rows.part(start, stop)
        compiled.moments_block(part.addresses, start, stop, _TILE, part.like, mean, deviation)

    for _ in rows.over(work, column_blocks(rows.dimension, _TILE), threads):
        pass
    return mean, deviation


def largest_magnitudes(updates: Any, threads: int | None = None) -> npt.NDArray[np.float64]:
    """Return each update's largest absolute value; inf or NaN where it holds anything that is not finite."""
    from fedra.kernels import sums_compiled as compiled

    rows = as_rows(updates)
    bits: Any = np.uint16 if rows.half else np.uint32 if rows.dtype == np.float32 else np.uint64
    mask = bits(np.iinfo(bits).max >> 1)

    def work(start: int, stop: int) -> npt.NDArray[Any]:
        largest = np.zeros(len(rows), dtype=bits)
        for part in rows.parts(start, stop, _TILE, stored=True):
            compiled.largest_bits(part.addresses, part.start, part.stop, mask, largest)
        return largest

    total = np.zeros(len(rows), dtype=bits)
    for partial in rows.over(work, column_blocks(rows.dimension, _TILE), threads):
        np.maximum(total, partial, out=total)
    stored = total.view({"": rows.dtype, "float16": np.dtype(np.float16), "bfloat16": BFLOAT16}[rows.half])
    return widened(stored).astype(np.float64)
