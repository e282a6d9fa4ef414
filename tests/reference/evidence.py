"""What the default of FedRA makes of a round: centres as vectors, one client at a time."""

from fractions import Fraction
from math import ceil, sqrt

import numpy as np


def most_liars(n, ratio):
    """``ceil(n ratio) + ceil(2 sqrt(n ratio (1 - ratio)))``, at least 1, at most ``floor((n-3)/2)``; 0 for ratio 0."""
    expected = n * Fraction(ratio)
    if expected == 0:
        return 0
    spread = 2 * sqrt(float(expected * (1 - Fraction(ratio))))
    return max(1, min(ceil(expected) + ceil(spread), (n - 3) // 2))


def cap(values, count, share):
    """The largest U at which `count` clients with U each hold at most `share` beside the others; else the least x."""
    descending = sorted(values, reverse=True)

    def fits(level, slack=0.0):
        others = sum(min(value, level) for value in descending[count:])
        return count * level * (1 - slack) <= share * (count * level + others)

    if count == 0 or sum(descending[:count]) * (1 - 1e-12) <= share * sum(descending):
        return descending[0]
    least = min(value for value in values if value > 0)
    if not fits(least, 1e-12):
        return descending[-1]
    low, high = least, descending[0]
    for _ in range(2000):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def quantile(values, weights, level):
    """The least value that at least `level` of the weight does not exceed."""
    for value in sorted(values):
        if sum(w for v, w in zip(values, weights, strict=True) if v <= value) >= level * sum(weights) * (1 - 1e-12):
            return value
    raise AssertionError


def evidence(updates, quantities, ratio="0.1"):
    """Return the implied quantities, the excess of the claims, and the quantities that count."""
    x, q = np.asarray(updates, dtype=np.float64), np.asarray(quantities, dtype=np.float64)
    n, liars = len(x), most_liars(len(x), ratio)
    k = max(liars, 1)
    beta = min(max(0.2, 1.5 * k / n), (k / n + 0.5) / 2)
    v = np.minimum(q, cap(q, k, beta))

    middles = []
    for i in range(n):
        others = [j for j in range(n) if j != i]
        middles.append(quantile([np.linalg.norm(x[i] - x[j]) for j in others], v[others], 0.5))
    h = quantile(middles, v, 0.5)
    a = np.array([v[i] * (min(1, h / middles[i]) ** 2 if middles[i] <= 100 * h else 0) for i in range(n)])

    kept = [True] * n
    for _ in range(4):
        r2, c = np.zeros(n), np.zeros(n)
        for i in range(n):
            others = [j for j in range(n) if j != i]
            p = a[others] / a[others].sum()
            r2[i] = np.sum((x[i] - p @ x[others]) ** 2)
            c[i] = np.sum(p**2 / v[others])
        z = r2 / (1 / v + c)
        t = quantile(z, v, 0.95 - beta)
        basis = [i for i in range(n) if kept[i] or z[i] <= t]
        s2 = sum(v[i] * min(z[i], 35 * t * (0.5 - beta) / beta) for i in basis) / sum(v[i] for i in basis)
        proof = np.maximum(r2 / s2 - c, 0)
        excess = q * proof
        kept = excess <= 40
        w = np.where(kept, q / np.maximum(1, excess / 4) ** 2, 0)
        trusted = np.minimum(w, cap(w, k, beta))
        if np.count_nonzero(trusted) <= k:
            break
        a = trusted
    with np.errstate(divide="ignore"):
        implied = 1 / proof
    return implied, excess, q if liars == 0 else w
