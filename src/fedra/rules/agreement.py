"""The shortest step in the hull of what a round's clients would do if any few of them were left out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from fedra.cohort import Flags, Floats

# Steps after which the search ends; a round of 50 clients takes some ten.
_MOST_STEPS = 200
# An agreement this close to the best one is good enough.
_CLOSE = 1e-6
_MOST_TURNS = 30
# Means that are nearly the same make the equations singular.
_RIDGE = 1e-12
# A squared length below this share of an update's is rounding: there is nothing shorter to be found.
_NOTHING = 1e-15


def agreed_weights(inner_products: Floats, weights: Floats, count: int) -> Floats:
    r"""Return weights of the mean that agrees most with all means that leave out at most `count` clients.

    With :math:`\mu_S = \sum_{i \notin S} w_i g^i / \sum_{i \notin S} w_i`, this is the point of least length in their
    hull,

    .. math:: g = \operatorname{argmin} \{\|g\|_2 : g \in \operatorname{conv}\{\mu_S : |S| \le k\}\}, \qquad
              \langle g, \mu_S \rangle \ge \|g\|_2^2 \text{ for every such } S,

    found as weights of the clients, by Wolfe's algorithm (1976): the hull is never written down, only the mean that
    agrees least with the point at hand is looked for. Where it is not certain which weights are right, there may be
    several: the hull is that of the means by each of them.

    Args:
        inner_products: (n, n) between the updates.
        weights: (n,), or (several, n), each with a positive one.
        count: k, how many clients may be left out; at most all but one of those of positive weight.
    """
    several = np.atleast_2d(weights)
    wholes: Floats = several / several.sum(axis=1, keepdims=True)
    scale = float(np.trace(inner_products)) / len(inner_products)
    point: Floats = wholes[0]
    if not scale > 0 or (count == 0 and len(wholes) == 1):
        return point
    products = inner_products / scale
    point = wholes[np.argmin(((wholes @ products) * wholes).sum(axis=1))]
    length = float(point @ products @ point)
    means, parts = point[np.newaxis], np.ones(1)
    for _ in range(_MOST_STEPS):
        agreement = products @ point
        mean = least_agreeing(agreement, several, count)
        if length <= _NOTHING or mean @ agreement >= (1 - _CLOSE) * length:
            break
        means, parts = _nearest(products, np.vstack([means, mean]), np.append(parts, 0.0))
        nearer: Floats = parts @ means
        shorter = float(nearer @ products @ nearer)
        if not shorter < length:
            break
        point, length = nearer, shorter
    return point


def supported_weights(inner_products: Floats, weights: Floats, count: int, support: float) -> Floats:
    r"""Return weights of the step that every mean without `count` clients supports, and that leaves out the fewest.

    With :math:`g_j` the shortest vector in the hull of all means that leave out at most j clients (`agreed_weights`),
    this is the first of :math:`j = 0, 1, 2, 4, \dots, k` with

    .. math:: \min_{|S| \le k} \langle g_j, \mu_S \rangle \ge \theta\, \|g_j\|_2^2

    which holds for j = k with :math:`\theta = 1`, by the optimality of the shortest vector.

    Args:
        inner_products: (n, n) between the updates.
        weights: (n,), or (several, n), each with a positive one.
        count: k, how many clients may be left out.
        support: theta, from 0 to 1.
    """
    for few in _steps_to(count):
        point = agreed_weights(inner_products, weights, few)
        agreement = inner_products @ point
        if least_agreeing(agreement, weights, count) @ agreement >= support * float(point @ agreement):
            return point
    return agreed_weights(inner_products, weights, count)


def _steps_to(count: int) -> Iterator[int]:
    """Yield 0, 1, 2, 4, ... below `count`."""
    few = 0
    while few < count:
        yield few
        few = max(1, 2 * few)


def least_agreeing(agreement: Floats, weights: Floats, count: int) -> Floats:
    r"""Return the weights of the mean that agrees least, of all that leave out at most `count` clients.

    .. math:: \min_{|S| \le k} \sum_{i \notin S} w_i a_i \Big/ \sum_{i \notin S} w_i

    over all of the `weights`, (n,) or (several, n).
    """
    means = np.array([_least_mean(agreement, each, count) for each in np.atleast_2d(weights)])
    least: Floats = means[np.argmin(means @ agreement)]
    return least


def _least_mean(agreement: Floats, weights: Floats, count: int) -> Floats:
    r"""Return the weights of the mean that agrees least, by one set of weights.

    A mean below :math:`\lambda` exists where leaving out the clients of largest :math:`w_i (a_i - \lambda)` makes one,
    so :math:`\lambda` is lowered to that until it stays (Dinkelbach, 1967).
    """
    count = min(count, int(np.count_nonzero(weights)) - 1)
    kept = np.ones(len(weights), dtype=bool)
    level = float(weights @ agreement) / float(weights.sum())
    for _ in range(_MOST_TURNS):
        gains = weights * (agreement - level)
        out = np.argsort(-gains, kind="stable")[:count]
        lower, without = _mean_without(agreement, weights, out[gains[out] > 0])
        if not lower < level:
            # Beside a weight that is 1e16 times the others, the mean without it cannot be seen from the level.
            lower, without = _mean_without(agreement, weights, np.argsort(-weights, kind="stable")[:count])
            if not lower < level:
                break
        level, kept = lower, without
    chosen: Floats = weights * kept
    mean: Floats = chosen / chosen.sum()
    return mean


def _mean_without(agreement: Floats, weights: Floats, out: npt.NDArray[np.intp]) -> tuple[float, Flags]:
    """Return how much the mean without some clients agrees, and who is part of it."""
    kept = np.ones(len(weights), dtype=bool)
    kept[out] = False
    return float(weights[kept] @ agreement[kept]) / float(weights[kept].sum()), kept


def _nearest(products: Floats, means: Floats, parts: Floats) -> tuple[Floats, Floats]:
    """Return those of the means, and their parts, that make up the point of their hull nearest to zero.

    From the parts at hand towards the nearest point of the plane through the means; whoever's part falls to 0 leaves.
    """
    while True:
        lengths = means @ products @ means.T
        ridge = _RIDGE * float(np.trace(lengths)) / len(means)
        wanted = np.linalg.solve(lengths + ridge * np.eye(len(means)), np.ones(len(means)))
        wanted = wanted / wanted.sum()
        falling = wanted <= 0
        if not falling.any():
            return means, wanted
        reach = float((parts[falling] / (parts[falling] - wanted[falling])).min())
        parts = np.maximum(parts + reach * (wanted - parts), 0.0)
        parts[falling & (parts <= parts[falling].min())] = 0.0
        staying = parts > 0
        means, parts = means[staying], parts[staying] / parts[staying].sum()
        if len(parts) == 1:
            return means, parts
