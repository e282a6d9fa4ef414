"""Sums of nearest distances, once for all clients or anew after each that is picked."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedra.kernels.distances import Triangle

Floats = npt.NDArray[np.float64]

# So many rows of the matrix are copied and sorted at a time.
_HEIGHT = 256


def nearest_sums(distances: Floats | Triangle, neighbours: int) -> Floats:
    """Return for each client the sum of its `neighbours` smallest distances to others."""
    sums = np.empty(len(distances))
    for first in range(0, len(distances), _HEIGHT):
        stop = min(first + _HEIGHT, len(distances))
        others = distances.rows(first, stop) if isinstance(distances, Triangle) else distances[first:stop].copy()
        others[np.arange(stop - first), np.arange(first, stop)] = np.inf
        others.sort(axis=1)
        sums[first:stop] = others[:, :neighbours].sum(axis=1)
    return sums


def repeated_nearest(distances: Floats, assumed: int, count: int) -> npt.NDArray[np.intp]:
    """Return the `count` clients that Krum picks one after the other, scored anew among those left each time.

    Of L clients left, a score is the sum of the L - assumed - 2 smallest distances to others of them, of one at least;
    ties go to the first.
    """
    from fedra.kernels import picking_compiled as compiled

    picks = np.empty(count, dtype=np.intp)
    order = np.argsort(distances, axis=1, kind="stable").astype(np.int32)
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(len(distances), dtype=np.int32)[np.newaxis], axis=1)
    compiled.repeated_picks(np.ascontiguousarray(distances), order, ranks, assumed, picks)
    return picks
