"""Centred trimmed meta-aggregation: the nearest to a centre, up to a share of the weight."""

import numpy as np


def ctma(updates, weights, centre, share):
    """Return the weighted mean of the clients nearest to `centre`, until ``1 - share`` of the weight is reached.

    Equally near, the lighter first. The last one's weight is cut to fit. Also what each client counted with.
    """
    rows, w = np.asarray(updates, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    budget = (1 - share) * w.sum()
    taken = np.zeros(len(w))
    for i in sorted(range(len(w)), key=lambda i: (np.sum((rows[i] - centre) ** 2), w[i])):
        taken[i] = min(w[i], budget - taken.sum()) if budget - taken.sum() > 1e-12 * w.sum() else 0.0
    return (taken / taken.sum()) @ rows, taken
