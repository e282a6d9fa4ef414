"""The quantity-robust scorer and the clients FedRA keeps."""

from fractions import Fraction
from math import ceil, floor

import numpy as np
from tests.reference.distances import pairwise_l1
from tests.reference.mcne import estimate_num_malicious
from tests.reference.means import fedavg


def quantity_robust_scores(updates, quantities, num_malicious, gamma):
    """``s(i) = q_i^gamma`` times the sum of the ``n - m - 2`` smallest ``Q(i, j) = sqrt(1/(1/q_i + 1/q_j)) L1``."""
    distances = pairwise_l1(updates)
    n = len(distances)
    scores = np.zeros(n)
    for i in range(n):
        scaled = []
        for j in range(n):
            if j != i:
                harmonic = 1 / (1 / float(quantities[i]) + 1 / float(quantities[j]))
                scaled.append(np.sqrt(harmonic) * distances[i, j])
        scores[i] = float(quantities[i]) ** gamma * sum(sorted(scaled)[: n - num_malicious - 2])
    return scores


def assumed_malicious(n, ratio, num_clients=None):
    """``m = ceil(n M/N)`` with ``M = floor(N ratio)``, or ``ceil(n ratio)`` for an unknown N; `ratio` is a text."""
    exact = Fraction(ratio)
    if num_clients is None:
        return ceil(n * exact)
    return ceil(Fraction(n * floor(num_clients * exact), num_clients))


def fedra(
    updates,
    quantities,
    *,
    ratio="0.1",
    num_clients=None,
    gamma=0.1,
    setting="dynamic",
    variance="separate",
    prior="number",
    iterate=False,
):
    """Return the scores, the m that was used or estimated, the kept clients and their weighted mean."""
    n = len(updates)
    assumed = assumed_malicious(n, ratio, num_clients)
    scores = quantity_robust_scores(updates, quantities, assumed, gamma)
    num_malicious, count = assumed, n - assumed - 1
    if setting == "dynamic":
        for attempt in range(6 if iterate else 1):
            if attempt:
                scores = quantity_robust_scores(updates, quantities, assumed, gamma)
            num_malicious = estimate_num_malicious(
                scores, ratio=ratio, num_clients=num_clients, variance=variance, prior=prior
            )
            if num_malicious == assumed:
                break
            assumed = num_malicious
        count = n - num_malicious
    order = sorted(range(n), key=lambda i: (scores[i], i))
    kept = sorted(order[:count])
    return scores, num_malicious, kept, fedavg([updates[i] for i in kept], [quantities[i] for i in kept])
