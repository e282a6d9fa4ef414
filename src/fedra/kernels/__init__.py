"""The hot loops: distances, column statistics and sums over updates that are read where they lie.

Every function takes an (n, d) matrix or a sequence of n vectors, float32 or float64, never stacks them, works without
the interpreter lock, and gives the same bits for any number of `threads` (None: one per core). Vectors of float16 or
bfloat16 are widened to float32 by tile, with the bits that float32 copies would give. The compiled halves, and Numba
with them, are imported at the first call, so that importing fedra stays quick.
"""

from fedra.kernels.columns import (
    column_mean_around_median,
    column_median,
    column_trimmed_mean,
    column_weighted_median,
    column_weighted_trimmed_mean,
)
from fedra.kernels.distances import (
    Triangle,
    distances_to_mean,
    distances_to_point,
    norms,
    pairwise_l1,
    pairwise_squared_l2,
    squared_l2_triangle,
)
from fedra.kernels.picking import nearest_sums, repeated_nearest
from fedra.kernels.rows import Rows, as_rows
from fedra.kernels.sums import column_moments, largest_magnitudes, mixed_rows, weighted_sum

__all__ = [
    "Rows",
    "Triangle",
    "as_rows",
    "column_mean_around_median",
    "column_median",
    "column_moments",
    "column_trimmed_mean",
    "column_weighted_median",
    "column_weighted_trimmed_mean",
    "distances_to_mean",
    "distances_to_point",
    "largest_magnitudes",
    "mixed_rows",
    "nearest_sums",
    "norms",
    "pairwise_l1",
    "pairwise_squared_l2",
    "repeated_nearest",
    "squared_l2_triangle",
    "weighted_sum",
]
