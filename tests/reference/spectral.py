"""Filters by the direction of largest variance, with the covariance as a matrix over all coordinates."""

import numpy as np


def principal(rows, weights):
    """Return the largest eigenvalue of the weighted covariance, and ``<x_i - mean, v>^2`` with its eigenvector."""
    p = weights / weights.sum()
    mean = p @ rows
    centred = rows - mean
    values, vectors = np.linalg.eigh((centred * p[:, np.newaxis]).T @ centred)
    return values[-1], (centred @ vectors[:, -1]) ** 2


def caf(updates, malicious):
    """Weights times ``1 - score/max`` until they add up to at most n - 2m; the mean of least covariance on the way."""
    rows = np.asarray(updates, dtype=np.float64)
    n = len(rows)
    weights = best = np.ones(n)
    least = np.inf
    while weights.sum() > n - 2 * malicious:
        variance, scores = principal(rows, weights)
        if variance < least:
            least, best = variance, weights
        largest = max(score for score, weight in zip(scores, weights, strict=True) if weight > 0)
        if largest <= 0:
            break
        shares = scores / largest
        weights = np.where((weights > 0) & (shares < 1 - 1e-9), weights * (1 - shares), 0.0)
    return (best / best.sum()) @ rows, best


def dnc(updates, dropped, subsets):
    """The mean of those whom no subset of coordinates has among its `dropped` largest scores, and who they are."""
    rows = np.asarray(updates, dtype=np.float64)
    good = set(range(len(rows)))
    for subset in subsets:
        _, scores = principal(rows[:, subset], np.ones(len(rows)))
        order = sorted(range(len(rows)), key=lambda i: scores[i])
        good &= set(order[: len(rows) - dropped])
    chosen = sorted(good)
    return (rows[chosen].mean(axis=0) if chosen else None), chosen
