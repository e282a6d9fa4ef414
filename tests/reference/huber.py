"""The point of least Huber loss, by repeated weighted means."""

import numpy as np
from tests.reference.coordinates import weighted_median


def huber(updates, weights, quantities, threshold=None, iterations=4):
    """``s <- sum w_i min(1, T_i/||s - x_i||) x_i`` over the sum of the same, from the weighted median.

    ``T_i = T / sqrt(q_i)``; T is `threshold`, or the median of ``||s - x_i|| sqrt(q_i)`` over those of any weight, anew
    in each step.
    """
    rows, w = np.asarray(updates, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    s = weighted_median(rows, w)
    for _ in range(iterations):
        away = [float(np.sqrt(np.sum((row - s) ** 2))) for row in rows]
        scaled = [d * np.sqrt(q) for d, q in zip(away, quantities, strict=True)]
        counting = [one for one, weight in zip(scaled, w, strict=True) if weight > 0]
        big_t = np.median(counting) if threshold is None else threshold
        factors = [1.0 if one <= big_t else big_t / one for one in scaled]
        pulls = w * factors
        s = (pulls / pulls.sum()) @ rows
    return s


def huber_loss(point, updates, weights, quantities, threshold):
    """``sum w_i phi(||s - x_i||; T_i)``, phi(u; T) = u^2/2 up to T, T u - T^2/2 beyond."""
    total = 0.0
    for row, weight, quantity in zip(np.asarray(updates, dtype=np.float64), weights, quantities, strict=True):
        u, t = float(np.linalg.norm(point - row)), threshold / np.sqrt(quantity)
        total += weight * (u * u / 2 if u <= t else t * u - t * t / 2)
    return total
