"""Order statistics of each column: medians, trimmed means, mean around the median.

All rows must be finite; screening sees to that before a rule comes here. Zeros of either sign are equal: a mean of them
is +0.0, and a value that is itself the result keeps the sign it came with.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fedra.kernels.networks import comparisons, sorting_network
from fedra.kernels.parts import Part
from fedra.kernels.rows import Rows, as_rows
from fedra.kernels.threads import column_blocks

Floats = npt.NDArray[np.float64]

# A tile of all rows should stay in the first-level cache, 32 KiB on many CPUs, with room for a few rows beside it.
_CACHE_BYTES = 28_672
# Fewer columns than this no longer pay for the loop; more than the most gain nothing.
_LEAST_TILE, _MOST_TILE = 64, 1024
# Widths are whole cache lines, and tiles begin with one: a vector across two lines costs twice.
_LINE = 64


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
    steps = min((sorting_network(count, ranks) for ranks in (inner, outer)), key=comparisons)

    def work(part: Part, width: int) -> None:
        tile = aligned((count, width), rows.dtype)
        sums = aligned((width,))
        compiled.trimmed_mean_block(part.addresses, trim, part.start, part.stop, steps, part.like, tile, sums, part.out)

    return _by_columns(rows, work, threads)


def column_mean_around_median(updates: Any, near: int, threads: int | None = None) -> npt.NDArray[Any]:
    """Return the mean of the `near` values of each column closest to its median (equally close: the smaller)."""
    from fedra.kernels import columns_compiled as compiled

    rows = as_rows(updates)
    count = len(rows)
    if not 1 <= near <= count:
        raise ValueError(f"near={near} is not between 1 and the {count} values of a column")
    steps = sorting_network(count, range(count))

    def work(part: Part, width: int) -> None:
        tile = aligned((count, width), rows.dtype)
        compiled.around_median_block(
            part.addresses, near, part.start, part.stop, steps, part.like, tile, aligned((4, width)), part.out
        )

    return _by_columns(rows, work, threads)


def column_weighted_median(updates: Any, weights: npt.ArrayLike, threads: int | None = None) -> npt.NDArray[Any]:
    """Return for each column the least value at which the running weight reaches half of it all.

    Where it is just half, the mean of that value and the next. Rows of weight 0 are not read.
    """
    from fedra.kernels import weighted_columns_compiled as compiled

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
    table, whole = _weight_table(weights[by_weight])
    half = whole / 2
    steps = sorting_network(len(rows), range(len(rows)))

    def work(part: Part, width: int) -> None:
        tile, tags, sums = _tagged_tiles(rows, width)
        rest = (tile, tags, sums, aligned((2, width)), part.out)
        compiled.weighted_median_block(part.addresses, table, half, part.start, part.stop, steps, part.like, *rest)

    return _by_columns(rows, work, threads, itemsize=8)


def column_weighted_trimmed_mean(
    updates: Any, weights: npt.ArrayLike, beta: float, threads: int | None = None
) -> npt.NDArray[Any]:
    """Return each column's weighted mean strictly between its weighted quantiles beta and 1 - beta.

    With the column sorted and S the running sum of weights, value i sits at rank ``P_i = (S_i - w_i / 2) / S_n``;
    quantiles interpolate linearly between ranks. Equal values are ordered by weight, so that the order of the
    rows does not matter. Nothing strictly between: the midpoint of the two quantiles.
    """
    from fedra.kernels import weighted_columns_compiled as compiled

    rows = as_rows(updates)
    count = len(rows)
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (count,) or count == 0 or not (np.isfinite(weights).all() and (weights > 0).all()):
        raise ValueError(f"weights of shape {weights.shape} for {count} rows; give one positive number for each row")
    if not 0 <= beta < 0.5:
        raise ValueError(f"beta={beta}; it needs 0 <= beta < 0.5")
    by_weight = np.argsort(weights, kind="stable")
    rows = rows.take(by_weight)
    table, whole = _weight_table(weights[by_weight])
    quantiles = (beta, 1.0 - beta)
    levels = np.array([quantiles, [_least_reaching(level, whole) for level in quantiles]])
    steps = sorting_network(count, range(count))

    def work(part: Part, width: int) -> None:
        tile, tags, shares = _tagged_tiles(rows, width)
        rest = (tile, tags, shares, aligned((count, width)), aligned((11, width)), part.out)
        compiled.weighted_trimmed_mean_block(
            part.addresses, table, whole, levels, part.start, part.stop, steps, part.like, *rest
        )

    return _by_columns(rows, work, threads, itemsize=8)


def _weight_table(ascending: Floats) -> tuple[Floats, float]:
    """Return the weight of each tag that a row may have (`weighted_columns_compiled`), and the sum of the weights."""
    # A power of two keeps every digit of the weights while their sum cannot overflow.
    scaled = np.ldexp(ascending, -int(np.frexp(ascending[-1])[1]))
    table = np.repeat(np.concatenate([scaled, scaled[::-1]]), 2)
    return table, float(np.cumsum(scaled)[-1])


def _least_reaching(level: float, whole: float) -> float:
    """Return the least sum of weights that, divided by the whole, rounds to at least this level."""
    least = level * whole
    while least / whole < level:
        least = math.nextafter(least, math.inf)
    while least > 0 and math.nextafter(least, 0.0) / whole >= level:
        least = math.nextafter(least, 0.0)
    return least


def _tagged_tiles(rows: Rows, width: int) -> tuple[Floats, Floats, Floats]:
    """Return tiles for values, for tags where values have no room for them, and for weights."""
    shape = (len(rows), width)
    return aligned(shape), aligned(shape if rows.dtype == np.float64 else (0, width)), aligned(shape)


def aligned(shape: tuple[int, ...], dtype: npt.DTypeLike = np.float64) -> npt.NDArray[Any]:
    """Return zeros that begin with a cache line; the last tile is sorted whole, also where no column fills it."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    room = np.zeros(size + _LINE, dtype=np.uint8)
    start = -room.ctypes.data % _LINE
    return room[start : start + size].view(dtype).reshape(shape)


def _by_columns(
    rows: Rows,
    work: Callable[[Part, int], None],
    threads: int | None,
    *,
    itemsize: int | None = None,
) -> npt.NDArray[Any]:
    """Run `work` over parts of the columns, with the width that its tiles shall have, and return what it wrote."""
    values = _CACHE_BYTES // (itemsize or rows.dtype.itemsize)
    width = values // len(rows) // (_LINE // 4) * (_LINE // 4)
    width = max(_LEAST_TILE, min(width, _MOST_TILE))
    out = rows.new_vector()

    def block(start: int, stop: int) -> None:
        for part in rows.parts(start, stop, width, out, stored=True):
            work(part, width)

    for _ in rows.over(block, column_blocks(rows.dimension, width), threads):
        pass
    return out
