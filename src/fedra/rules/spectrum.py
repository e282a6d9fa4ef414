"""The direction in which clients differ most, found among n clients and never among d coordinates."""

from __future__ import annotations

import numpy as np

from fedra.cohort import Floats


def principal_scores(squared_distances: Floats, weights: Floats) -> tuple[float, Floats]:
    r"""Return the largest eigenvalue of the weighted covariance, and :math:`\langle x_i - \mu, v \rangle^2` along it.

    With :math:`p = w / \sum w` and inner products :math:`K_{ij} = \langle x_i - \mu, x_j - \mu \rangle`, which
    distances give, the eigenvalues of the covariance are those of :math:`\sqrt{p_i p_j} K_{ij}`. Clients of weight 0
    score 0. Clients are put into an order of their own, so that the order in which they came does not change a bit.

    Args:
        squared_distances: (n, n) squared Euclidean distances between the updates.
        weights: (n,) numbers of at least 0, not all of them 0.
    """
    scores = np.zeros(len(weights))
    used = np.flatnonzero(weights)
    distances = squared_distances[np.ix_(used, used)]
    unit = float(distances.max())
    if unit == 0:
        return 0.0, scores
    distances = distances / unit
    order = np.lexsort((weights[used], np.sort(distances, axis=1).sum(axis=1)))
    used, distances = used[order], distances[np.ix_(order, order)]

    parts = weights[used] / weights[used].sum()
    pulls = (distances * parts).sum(axis=1)
    products = (pulls[:, np.newaxis] + pulls - distances - float((parts * pulls).sum())) / 2
    roots = np.sqrt(parts)
    values, vectors = np.linalg.eigh(roots[:, np.newaxis] * products * roots)
    variance = float(values[-1])
    if not variance > 0:
        return 0.0, scores
    along = (products * (roots * vectors[:, -1])).sum(axis=1) / np.sqrt(variance)
    scores[used] = along**2 * unit
    return variance * unit, scores
