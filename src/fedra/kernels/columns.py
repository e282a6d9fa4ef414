"""Order statistics of each column: medians, trimmed means, mean around the median.

All rows must be finite; screening sees to that before a rule comes here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fedra.kernels.networks import sorting_network
from fedra.kernels.parts import Part
from fedra.kernels.rows import Rows, as_rows
from fedra.kernels.threads import column_blocks

# A tile of all rows should stay in the first-level cache; fewer columns than this no longer pay for the loop.
_CACHE_BYTES = 40_960
_LEAST_TILE = 64


def column_median(updates: Any, threads: int | None = None) -> npt.NDArray[Any]:
    """Return the median of each column; for an even count the mean of the two middle values."""
    rows = as_rows(updates)
    return column_trimmed_mean(rows, max(len(rows) - 1, 0) // 2, threads)


def column_trimmed_mean(updates: Any, trim: int, threads: int | None = None) -> npt.NDArray[Any]:
    """Return the mean of each column without its `trim` smallest and `trim` largest values."""
    from fedra.kernels import columns_compiled as compiled

    rows = as_rows(updates)
    count = len(rows)
    if not 0 <= 2 * trim < count:
        raise ValueError(f"trim={trim} leaves none of {count} values; it needs 0 <= 2 * trim < {count}")
    # The middle values may stay in any order, or the trimmed ones may: whichever takes fewer comparisons.
    inner, outer = range(trim, count - trim), (*range(trim), *range(count - trim, count))
    pairs = min((sorting_network(count, ranks) for ranks in (inner, outer)), key=len)

    def work(part: Part, tile: npt.NDArray[Any]) -> None:
        sums = np.empty(tile.shape[1])
        compiled.trimmed_mean_block(part.addresses, trim, part.start, part.stop, pairs, tile, sums, part.out)

    return _by_columns(rows, work, threads)


def column_mean_around_median(updates: Any, near: int, threads: int | None = None) -> npt.NDArray[Any]:
    """Return the mean of the `near` values of each column closest to its median (equally close: the smaller)."""
    from fedra.kernels import columns_compiled as compiled

    rows = as_rows(updates)
    count = len(rows)
    if not 1 <= near <= count:
        raise ValueError(f"near={near} is not between 1 and the {count} values of a column")
    pairs = sorting_network(count, range(count))

    def work(part: Part, tile: npt.NDArray[Any]) -> None:
        compiled.around_median_block(part.addresses, near, part.start, part.stop, pairs, tile, part.out)

    return _by_columns(rows, work, threads)


def column_weighted_median(updates: Any, weights: npt.ArrayLike, threads: int | None = None) -> npt.NDArray[Any]:
    """Return for each column the least value at which the running weight reaches half of it all.

    Where it is just half, the mean of that value and the next. Rows of weight 0 are not read.
    """
    from fedra.kernels import columns_compiled as compiled

    rows = as_rows(updates)
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (len(rows),) or not (
        np.isfinite(weights).all() and (weights >= 0).all() and (weights > 0).any()
    ):
        raise ValueError(
            f"weights of shape {weights.shape} for {len(rows)} rows; give each row a number >= 0, not all of them 0"
        )
    used = np.flatnonzero(weights)
    by_weight = used[np.argsort(weights[used], kind="stable")]
    rows = rows.take(by_weight)
    # A power of two keeps every digit of the weights while their sum cannot overflow.
    ordered = np.ldexp(weights[by_weight], -int(np.frexp(weights.max())[1]))
    pairs = sorting_network(len(rows), range(len(rows)))

    def work(part: Part, tile: npt.NDArray[Any]) -> None:
        tags = np.empty(tile.shape, dtype=np.int32 if tile.dtype == np.float32 else np.int64)
        compiled.weighted_median_block(part.addresses, ordered, part.start, part.stop, pairs, tile, tags, part.out)

    return _by_columns(rows, work, threads)


def column_weighted_trimmed_mean(
    updates: Any, weights: npt.ArrayLike, beta: float, threads: int | None = None
) -> npt.NDArray[Any]:
    """Return each column's weighted mean strictly between its weighted quantiles beta and 1 - beta.

    With the column sorted and S the running sum of weights, value i sits at rank ``P_i = (S_i - w_i / 2) / S_n``;
    quantiles interpolate linearly between ranks. Equal values are ordered by weight, so that the order of the
    rows does not matter. Nothing strictly between: the midpoint of the two quantiles.
    """
    from fedra.kernels import columns_compiled as compiled

    rows = as_rows(updates)
    count = len(rows)
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (count,) or count == 0 or not (np.isfinite(weights).all() and (weights > 0).all()):
        raise ValueError(f"weights of shape {weights.shape} for {count} rows; give one positive number for each row")
    if not 0 <= beta < 0.5:
        raise ValueError(f"beta={beta}; it needs 0 <= beta < 0.5")
    by_weight = np.argsort(weights, kind="stable")
    rows = rows.take(by_weight)
    # A power of two keeps every digit of the weights while their sum cannot overflow.
    ordered = np.ldexp(weights[by_weight], -int(np.frexp(weights.max())[1]))
    pairs = sorting_network(count, range(count))

    def work(part: Part, tile: npt.NDArray[Any]) -> None:
        tags = np.empty(tile.shape, dtype=np.int32 if tile.dtype == np.float32 else np.int64)
        compiled.weighted_trimmed_mean_block(
            part.addresses, ordered, beta, part.start, part.stop, pairs, tile, tags, part.out
        )

    return _by_columns(rows, work, threads)


def _by_columns(rows: Rows, work: Callable[[Part, npt.NDArray[Any]], None], threads: int | None) -> npt.NDArray[Any]:
    """Run `work` over parts of the columns, each block of them with a tile of its own, and return what it wrote."""
    width = _CACHE_BYTES // (len(rows) * rows.dtype.itemsize) // _LEAST_TILE * _LEAST_TILE
    width = max(_LEAST_TILE, min(width, 1024))
    out = rows.new_vector()

    def block(start: int, stop: int) -> None:
        # Zeros: the last tile is sorted whole, also where no column fills it.
        tile = np.zeros((len(rows), width), dtype=rows.dtype)
        for part in rows.parts(start, stop, width, out):
            work(part, tile)

    for _ in rows.over(block, column_blocks(rows.dimension, width), threads):
        pass
    return out
