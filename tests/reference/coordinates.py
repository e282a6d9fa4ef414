"""Rules that treat each coordinate by itself."""

import numpy as np


def _by_coordinate(updates, reduce):
    columns = np.asarray(updates, dtype=np.float64).T
    return np.array([reduce([float(value) for value in column]) for column in columns])


def _middle(values):
    ordered = sorted(values)
    n = len(ordered)
    if n % 2:
        return ordered[n // 2]
    return (ordered[n // 2 - 1] + ordered[n // 2]) / 2


def median(updates):
    """Per coordinate the middle value, or the mean of the two middle ones."""
    return _by_coordinate(updates, _middle)


def trimmed_mean(updates, trim):
    """Per coordinate the mean of what is left without the `trim` largest and `trim` smallest values."""

    def reduce(values):
        left = sorted(values)[trim : len(values) - trim]
        return sum(left) / len(left)

    return _by_coordinate(updates, reduce)


def mean_around_median(updates, count):
    """Per coordinate the mean of the `count` values closest to the median."""

    def reduce(values):
        centre = _middle(values)
        closest = sorted(values, key=lambda value: abs(value - centre))[:count]
        return sum(closest) / count

    return _by_coordinate(updates, reduce)


def weighted_trimmed_mean(updates, weights, beta=0.1):
    """Per coordinate the weighted mean strictly between the beta and 1 - beta weighted quantiles.

    ``P_i = (S_i - w_i/2) / S_n`` of the sorted values, equal ones by weight; quantiles interpolate between them.
    """

    def reduce(values):
        pairs = sorted(zip(values, map(float, weights), strict=True))
        ordered = [value for value, _ in pairs]
        whole = sum(weight for _, weight in pairs)
        positions = []
        running = 0.0
        for _, weight in pairs:
            running += weight
            positions.append((running - weight / 2) / whole)
        low, high = np.interp([beta, 1 - beta], positions, ordered)
        inside = [(value, weight) for value, weight in pairs if low < value < high]
        if not inside:
            return (low + high) / 2
        return sum(value * weight for value, weight in inside) / sum(weight for _, weight in inside)

    return _by_coordinate(updates, reduce)
