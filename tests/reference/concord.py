"""The shortest vector in the hull of all means that leave out a few clients, every one of them written down."""

from itertools import combinations

import numpy as np


def flattened(quantities, difference):
    """What claims are worth where clients differ by so many times the variance of an update of median quantity."""
    return np.array([1 / (1 / q + difference / np.median(quantities)) for q in quantities])


def all_means(updates, weights, count):
    """The weighted means without each set of at most `count` clients, by each row of weights."""
    n = len(updates)
    for each in np.atleast_2d(weights):
        for size in range(count + 1):
            for out in combinations(range(n), size):
                stay = [i for i in range(n) if i not in out]
                if sum(each[stay]) > 0:
                    yield sum(each[i] * updates[i] for i in stay) / sum(each[stay])


def shortest_in_hull(points, steps=20_000):
    """Frank-Wolfe with exact steps: towards the point that agrees least, as far as it shortens."""
    points = np.asarray(points, dtype=np.float64)
    found = points[0]
    for _ in range(steps):
        towards = points[np.argmin(points @ found)] - found
        if not towards @ towards > 0:
            break
        found = found + np.clip(-(found @ towards) / (towards @ towards), 0, 1) * towards
    return found


def supported(updates, weights, count, support, steps=20_000):
    """The first g_j, j = 0, 1, 2, 4, ..., count, that every mean without `count` clients supports."""
    everyone = list(all_means(updates, weights, count))
    for few in [j for j in (0, 1, 2, 4, 8, 16) if j < count]:
        found = shortest_in_hull(list(all_means(updates, weights, few)), steps)
        if min(mean @ found for mean in everyone) >= support * (found @ found):
            return found
    return shortest_in_hull(everyone, steps)
