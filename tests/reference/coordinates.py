"""Rules that treat each coordinate by itself."""

from fractions import Fraction

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


def weighted_median(updates, weights):
    """Per coordinate the least value at which the running weight reaches half; at just half, the mean with the next."""

    def reduce(values):
        exact = [(value, Fraction(float(weight))) for value, weight in zip(values, weights, strict=True)]
        pairs = sorted((value, weight) for value, weight in exact if weight > 0)
        half = sum(weight for _, weight in pairs) / 2
        running = Fraction(0)
        for place, (value, weight) in enumerate(pairs):
            running += weight
            if running == half:
                return (value + pairs[place + 1][0]) / 2
            if running > half:
                return value
        raise AssertionError

    return _by_coordinate(updates, reduce)


def meamed(updates, malicious):
    """Per coordinate the mean of the n - m values nearest the median."""
    return mean_around_median(updates, len(updates) - malicious)
