"""What a rule believes of the claims of a round, by each way of believing."""

import numpy as np
from tests.reference.evidence import evidence
from tests.reference.truncate import top_share_holds


def believed(updates, quantities, weights, ratio="0.1"):
    """Claims as they are, cut so that the ``k = int(n ratio + 1)`` largest hold at most half, one each, or proved."""
    if weights == "equal":
        return np.ones(len(quantities))
    if weights == "verified":
        return evidence(updates, quantities, ratio)[2]
    claims = np.asarray(quantities, dtype=np.float64)
    if weights == "capped":
        return np.minimum(claims, _cap(claims, ratio))
    return claims


def _cap(claims, ratio):
    from fractions import Fraction

    if len(set(claims)) == 1 or top_share_holds(claims, max(claims), Fraction(ratio)):
        return np.inf
    low, high = 1, int(np.ceil(max(claims)))
    if not top_share_holds(claims, low, Fraction(ratio)):
        return 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if top_share_holds(claims, middle, Fraction(ratio)) else (low, middle)
    return low
