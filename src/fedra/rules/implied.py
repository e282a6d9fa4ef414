"""The quantity that a client's distances speak for, whatever it claims."""

from __future__ import annotations

import numpy as np

from fedra.cohort import Flags, Floats

_LEAST, _MOST = 1e-12, 1e12
# Halves the range of log(1/q), which is 55 wide, down to the spacing of floats.
_STEPS = 54


# Claims and distances near the largest float may overflow to infinity, which compares as it should.
@np.errstate(over="ignore")
def implied_quantities(distances: Floats, quantities: Floats, kept: Flags) -> Floats | None:
    r"""Return the quantity at which each client's distances to the kept clients are what they should be.

    By Lemma 1 distances shrink as :math:`\|g^i - g^j\|_1 \approx \kappa \sqrt{1/q^i + 1/q^j}`. The scale :math:`\kappa`
    is the median over kept pairs; client i then has the :math:`q` that solves
    :math:`\sum_j \sqrt{q^j}\,\|g^i - g^j\|_1 = \kappa \sum_j \sqrt{q^j / q + 1}` over kept j other than i. Infinity:
    it lies so close that no quantity is too large. None: fewer than three clients were kept, or they are all alike.
    """
    inside = np.flatnonzero(kept)
    if len(inside) < 3:
        return None
    # A middle claim as the unit; the mean of two middle ones could overflow.
    unit = float(np.sort(quantities[inside])[len(inside) // 2])
    relative = quantities / unit
    first, second = (inside[side] for side in np.triu_indices(len(inside), k=1))
    scale = float(np.median(distances[first, second] / np.sqrt(1 / relative[first] + 1 / relative[second])))
    if scale == 0:
        return None
    references = kept[np.newaxis, :] & ~np.eye(len(kept), dtype=bool)
    roots = np.sqrt(relative)
    # Whoever is no reference counts as 1 on both sides, which is what a relative quantity of 0 gives in `expected`.
    seen = np.where(references, distances / scale * roots, 1.0).sum(axis=1)
    weights = np.where(references, relative, 0.0)

    def expected(inverse: Floats) -> Floats:
        terms = weights * inverse[:, np.newaxis]
        terms += 1
        totals: Floats = np.sqrt(terms, out=terms).sum(axis=1)
        return totals

    # `expected` grows with 1/q: bisection over its logarithm.
    low = np.full(len(kept), np.log(_LEAST))
    high = np.full(len(kept), np.log(_MOST))
    for _ in range(_STEPS):
        middle = (low + high) / 2
        short = expected(np.exp(middle)) < seen
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    implied: Floats = unit / np.exp((low + high) / 2)
    implied[seen <= expected(np.full(len(kept), _LEAST))] = np.inf
    return implied
