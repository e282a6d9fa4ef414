"""Capped quantities, then a quantity-weighted trimmed mean."""

from fractions import Fraction
from math import ceil

from tests.reference.coordinates import weighted_trimmed_mean


def top_share_holds(quantities, cap, alpha=Fraction(1, 10), alpha_star=Fraction(1, 2)):
    """Whether ``sum over the top k of min(q, U) <= alpha* sum min(q, U)``, exactly, with ``k = int(n alpha + 1)``."""
    capped = sorted((min(Fraction(quantity), Fraction(cap)) for quantity in quantities), reverse=True)
    k = int(len(capped) * alpha + 1)
    return sum(capped[:k]) <= alpha_star * sum(capped)


def largest_cap(quantities):
    """The largest integer U that keeps the top k at or below their share, by trying all; None: nothing is cut."""
    if len(set(quantities)) == 1 or top_share_holds(quantities, max(quantities)):
        return None
    cap = 0
    while cap < ceil(max(quantities)) and top_share_holds(quantities, cap + 1):
        cap += 1
    return cap


def truncate(updates, quantities, cap, beta=0.1):
    """The weighted trimmed mean with quantities at most `cap` (None: as they are)."""
    capped = [float(q) if cap is None else min(float(q), float(cap)) for q in quantities]
    return weighted_trimmed_mean(updates, capped, beta)
