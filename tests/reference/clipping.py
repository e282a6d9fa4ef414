"""Centred clipping, one client after the other."""

import numpy as np


def centered_clipping(updates, centre=None, radius=None, iterations=3, count=None, weights=None):
    """``v + sum w_i/W (x_i - v) min(1, tau / ||x_i - v||_2)``, several times; v starts at `centre`, or zero.

    tau is `radius`, or the median of the distances to v, anew in each step; w_i = 1
    without `weights`, and W then is `count`, or the number of updates.
    """
    rows = np.asarray(updates, dtype=np.float64)
    centre = np.zeros(rows.shape[1]) if centre is None else np.asarray(centre, dtype=np.float64)
    weights = [1.0] * len(rows) if weights is None else weights
    total = sum(weights) if count is None else count
    for _ in range(iterations):
        distances = [float(np.sqrt(np.sum((row - centre) ** 2))) for row in rows]
        tau = float(np.median(distances)) if radius is None else radius
        step = np.zeros_like(centre)
        for row, distance, weight in zip(rows, distances, weights, strict=True):
            step += weight / total * (row - centre) * (1.0 if distance <= tau else tau / distance)
        centre = centre + step
    return centre
