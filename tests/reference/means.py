"""Rules that are a mean of all clients."""

import numpy as np


def fedavg(updates, quantities):
    """``sum q g / sum q``."""
    rows = np.asarray(updates, dtype=np.float64)
    total = np.zeros(rows.shape[1])
    for row, quantity in zip(rows, quantities, strict=True):
        total += float(quantity) * row
    return total / sum(float(quantity) for quantity in quantities)


def uniform(updates):
    """The mean of all updates."""
    return fedavg(updates, [1.0] * len(updates))


def norm_bound(updates, quantities, bound=None):
    """``g min(1, B/||g||_2)``, then the quantity-weighted mean; B is the cohort's median norm when not given."""
    rows = np.asarray(updates, dtype=np.float64)
    norms = [float(np.sqrt(np.sum(row**2))) for row in rows]
    if bound is None:
        bound = float(np.median(norms))
    clipped = [row if norm <= bound else row * (bound / norm) for row, norm in zip(rows, norms, strict=True)]
    return fedavg(clipped, quantities)
