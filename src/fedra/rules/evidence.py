"""How much data a client's update speaks for, whatever the client claims and however far away others lie."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fedra.cohort import Flags, Floats, implied_text, number_text
from fedra.kernels import Triangle
from fedra.rules.malicious import exact

# A claim counts in full up to so many times what the update proves, and falls off with the square beyond.
FULL_WEIGHT = 4.0
# A claim of more than so many times what the update proves is left out.
LEFT_OUT = 40.0

_STEPS = 4
# How far a single client may pull the scale, at the least share; the larger the share that may lie, the less.
_PULL = 35.0
# Clients beyond this many times the usual distance have no part in the first centre.
_NEAR_ENOUGH = 100.0
# Capped claims are often equal, and a sum of them just the share that is sought: there rounding must not decide.
_ROUNDED = 1 - 1e-12
# Distances beyond this many times the usual one are as good as infinite, and stay finite when they are multiplied.
_FARTHEST = 1e200
# So many clients' distances to all others are worked on at a time: a whole matrix several times over would not fit.
_HEIGHT = 64


@dataclass(frozen=True, eq=False, kw_only=True)
class Evidence:
    """What the updates of a round prove.

    `implied` is the quantity each update speaks for (infinity: no claim is too large), `excess` the claim divided by
    it, `counted` the quantity that counts in the average, 0 for those who are not `kept`.
    """

    implied: Floats
    excess: Floats
    counted: Floats
    kept: Flags

    def without(self, left_out: Flags) -> Evidence:
        """Return the same with these clients left out as well, whatever their updates prove."""
        return Evidence(
            implied=np.where(left_out, 0.0, self.implied),
            excess=np.where(left_out, np.inf, self.excess),
            counted=np.where(left_out, 0.0, self.counted),
            kept=self.kept & ~left_out,
        )


def most_liars(num_sampled: int, malicious_ratio: float, num_malicious: int | None = None) -> int:
    """Return how many malicious clients a round may well hold: m~ and two standard deviations of a binomial.

    At most floor((n-3)/2); 0 where nobody is assumed to be malicious.
    """
    expected = num_sampled * exact(malicious_ratio) if num_malicious is None else num_malicious
    if expected == 0:
        return 0
    spread = math.sqrt(float(expected * (1 - min(expected / num_sampled, 1))))
    return max(1, min(math.ceil(expected) + math.ceil(2 * spread), (num_sampled - 3) // 2))


def weigh_evidence(squared_distances: Floats | Triangle, quantities: Floats, num_liars: int) -> Evidence:
    r"""Compare each claim with what the client's distance to the centre of the others speaks for.

    A mean over q samples lies about :math:`s / \sqrt q` from the truth. With :math:`r_i` the distance of client i to
    the centre of the *other* clients, whose own variance is :math:`c_i s^2`,

    .. math:: \hat q^i = \frac{1}{r_i^2 / s^2 - c_i}, \qquad w_i = q^i \min(1, 4\,\hat q^i / q^i)^2,

    0 where :math:`q^i > 40\,\hat q^i`. Centre and scale are found in turns, from claims that are capped so that the
    `num_liars` largest cannot decide. A client past the cut takes part in neither, so how far it lies makes no
    difference to the others.

    Args:
        squared_distances: (n, n) squared Euclidean distances between the updates, or half of them.
        quantities: (n,) claims, at least 1.
        num_liars: how many clients may lie, less than n/2; 0 believes all claims, whatever the updates prove.
    """
    if num_liars == 0:
        proved = weigh_evidence(squared_distances, quantities, 1)
        everybody = np.ones(len(quantities), dtype=bool)
        return Evidence(implied=proved.implied, excess=proved.excess, counted=quantities, kept=everybody)
    count = len(quantities)
    share = min(max(0.2, 1.5 * num_liars / count), (num_liars / count + 0.5) / 2)
    level = 0.95 - share
    pull = _PULL * (0.5 - share) / share

    believed = np.minimum(quantities, capped_at(quantities, num_liars, share))
    unit = float(believed.max())
    believed = believed / unit
    claims = quantities / unit
    centre, usual_distance = _start(squared_distances, believed)

    kept = np.ones(count, dtype=bool)
    for _ in range(_STEPS):
        gaps, own = _gaps(squared_distances, usual_distance, centre, believed)
        expected = 1 / believed + own
        surprises = gaps / expected
        usual = _weighted_quantile(surprises, believed, level)
        basis = believed * (kept | (surprises <= usual))
        variance = _ordered_sum(basis * np.minimum(surprises, pull * usual)) / _ordered_sum(basis)
        if variance > 0:
            proof = np.maximum(gaps / variance - own, 0.0)  # 1 / implied
            with np.errstate(over="ignore"):
                excess = claims * proof
        else:  # the believed majority sent the same: whoever did not has nothing that speaks for it
            proof = excess = np.where(gaps > 0, np.inf, 0.0)
        kept = excess <= LEFT_OUT
        counted = claims * np.minimum(1.0, FULL_WEIGHT / np.maximum(excess, FULL_WEIGHT)) ** 2 * kept
        trusted = np.minimum(counted, capped_at(counted, num_liars, share))
        if not trusted.max() > 0 or np.count_nonzero(trusted) <= num_liars:
            break
        centre = trusted
    if not kept.any():
        kept = surprises <= usual
        counted = believed * kept
    with np.errstate(divide="ignore", over="ignore"):
        implied = np.where(proof > 0, unit / proof, np.inf)
    return Evidence(implied=implied, excess=excess, counted=counted, kept=kept)


def flattened(quantities: Floats, difference: float) -> Floats:
    r"""Return what claims are worth where clients differ: :math:`1 / (1/q^i + \rho/\tilde q)`, with the median claim.

    A client's update then lies :math:`s^2 (1/q^i + \rho/\tilde q)` from that of all: beyond the noise of its samples by
    the variance between clients, which is :math:`\rho` times that of an update of median quantity. These are the
    weights of random effects.
    """
    if difference == 0:
        return quantities
    worth: Floats = 1 / (1 / quantities + difference / float(np.median(quantities)))
    return worth


def excess_reasons(quantities: Floats, implied: Floats) -> list[str]:
    """Say of each client what it claims and what its update proves, as the reason for leaving it out."""
    return [
        f"claims {number_text(claim)} samples and behaves like {implied_text(proof)}: "
        f"more than {LEFT_OUT:g} times as many"
        for claim, proof in zip(quantities, implied, strict=True)
    ]


def capped_at(values: Floats, count: int, share: float) -> float:
    r"""Return the largest U at which `count` clients with U each would hold at most `share` beside the other values.

    The others are those after the `count` largest, each up to U. Where the largest hold no more than `share` as they
    are, nothing is cut; where no U does, since there are too few others, U is the least value.
    """
    descending = np.sort(values)[::-1]
    largest = float(descending[0])
    if count == 0 or largest == 0:
        return largest
    # In units of the largest, so that sums stay finite.
    descending = descending / largest
    rests = np.append(np.cumsum(descending[::-1])[::-1], 0.0)
    if float(descending[:count].sum()) * _ROUNDED <= share * float(rests[0]):
        return largest
    # With the j largest at U, the `count` largest taken for as large:  count U = share (j U + rest_j).
    capped = np.arange(count, len(values))
    capped = capped[share * capped < count]
    levels = share * rests[capped] / (count - share * capped)
    fits = np.flatnonzero(levels >= descending[capped] * _ROUNDED)
    return float(levels[fits[0]]) * largest if len(fits) else float(descending[-1]) * largest


def _blocks(squared: Floats | Triangle) -> Iterator[tuple[int, Floats]]:
    """Yield the matrix in blocks of rows that may be written to, each with the number of its first row."""
    if isinstance(squared, Triangle):
        yield from squared.blocks(_HEIGHT)
    else:
        yield from ((first, squared[first : first + _HEIGHT].copy()) for first in range(0, len(squared), _HEIGHT))


def _start(squared: Floats | Triangle, believed: Floats) -> tuple[Floats, float]:
    """Return weights of a first centre, and the usual distance.

    A client weighs the less, the farther it lies from the believed half of the others that is nearest to it.
    """
    middles = np.empty(len(believed))
    for first, block in _blocks(squared):
        own = np.arange(first, first + len(block))
        distances = np.sqrt(block, out=block)
        order = np.argsort(distances, axis=1, kind="stable")
        weights = believed[order]
        weights[order == own[:, np.newaxis]] = 0.0
        running = np.cumsum(weights, axis=1, out=weights)
        places = np.argmax(running >= 0.5 * _ROUNDED * running[:, -1:], axis=1)
        rows = np.arange(len(block))
        middles[own] = distances[rows, order[rows, places]]
    usual = _weighted_quantile(middles, believed, 0.5)
    if usual == 0:
        return believed * (middles == 0), usual
    closeness = np.where(middles <= _NEAR_ENOUGH * usual, usual / np.maximum(middles, usual), 0.0)
    return believed * closeness**2, usual


def _gaps(squared: Floats | Triangle, usual: float, weights: Floats, believed: Floats) -> tuple[Floats, Floats]:
    r"""Return each client's squared distance to the weighted centre of the others, and that centre's variance.

    From :math:`\|x_i - \sum_j p_j x_j\|^2 = \sum_j p_j D_{ij} - \frac12 \sum_{jk} p_j p_k D_{jk}`; the variance is in
    units of one sample's, and distances in units of the usual one, where that is not 0.
    """
    rests = _ordered_sum(weights) - weights
    pulls = np.empty(len(weights))
    for first, block in _blocks(squared):
        if usual != 0:
            np.sqrt(block, out=block)
            block /= usual
            np.minimum(block, math.sqrt(_FARTHEST), out=block)
            block **= 2
        block *= weights
        block.sort(axis=1)
        pulls[first : first + len(block)] = block.sum(axis=1)
    spread = _ordered_sum(weights * pulls)
    gaps = pulls / rests - (spread - 2 * weights * pulls) / (2 * rests**2)
    shares = weights**2 / believed
    return np.maximum(gaps, 0.0), (_ordered_sum(shares) - shares) / rests**2


def _ordered_sum(values: Floats) -> float:
    """Return a sum that does not depend on the order of the clients."""
    return float(np.sort(values).sum())


def _weighted_quantile(values: Floats, weights: Floats, level: float) -> float:
    """Return the least value that at least `level` of the weight does not exceed."""
    order = np.lexsort((weights, values))
    running = np.cumsum(weights[order])
    return float(values[order[np.argmax(running >= level * _ROUNDED * running[-1])]])
