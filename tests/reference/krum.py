"""Rules that choose clients by how near their nearest neighbours are."""

import numpy as np
from tests.reference.coordinates import mean_around_median
from tests.reference.distances import pairwise_squared_l2
from tests.reference.means import uniform


def _scores(distances, candidates, neighbours):
    scores = {}
    for i in candidates:
        others = sorted(distances[i, j] for j in candidates if j != i)
        scores[i] = sum(others[:neighbours])
    return scores


def krum_scores(updates, num_malicious):
    """The sum of the ``n - m - 2`` smallest squared L2 distances to others."""
    n = len(updates)
    scores = _scores(pairwise_squared_l2(updates), range(n), n - num_malicious - 2)
    return np.array([scores[i] for i in range(n)])


def krum(updates, num_malicious):
    """The index of the least score."""
    return int(np.argmin(krum_scores(updates, num_malicious)))


def multi_krum(updates, num_malicious, count=None):
    """The indices of the `count` least scores, and their mean; ``c = n - m - 2`` when not given."""
    scores = krum_scores(updates, num_malicious)
    count = len(updates) - num_malicious - 2 if count is None else count
    chosen = sorted(range(len(updates)), key=lambda i: (scores[i], i))[:count]
    return chosen, uniform([updates[i] for i in chosen])


def bulyan(updates, num_malicious):
    """Krum's winners one after the other, re-scored, until ``n - 2m`` are chosen; then the mean around the median."""
    n = len(updates)
    distances = pairwise_squared_l2(updates)
    left = list(range(n))
    chosen = []
    while len(chosen) < n - 2 * num_malicious:
        scores = _scores(distances, left, max(1, len(left) - num_malicious - 2))
        best = min(left, key=lambda i: (scores[i], i))
        left.remove(best)
        chosen.append(best)
    chosen.sort()
    return chosen, mean_around_median([updates[i] for i in chosen], len(chosen) - 2 * num_malicious)
