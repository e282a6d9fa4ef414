"""CAF: weigh down whoever lies farthest along the direction of largest variance, until that is explained."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedra.cohort import Cohort, Floats
from fedra.kernels import pairwise_squared_l2
from fedra.rules.base import Decision, Family
from fedra.rules.malicious import AssumesMalicious
from fedra.rules.spectrum import principal_scores

# Colluders who send the same have the same score, which rounding must not break up.
_FARTHEST = 1 - 1e-9


@dataclass(frozen=True, kw_only=True)
class CAF(AssumesMalicious):
    r"""Weights times 1 - score/max along the direction of largest variance, until they add up to at most n-2m~.

    The score of a client is :math:`\langle g^i - \mu, v \rangle^2`, with mean and top eigenvector v of the weighted
    covariance, anew after each step. The result is the weighted mean whose covariance had the least top eigenvalue
    (covariance-bound agnostic filter, Allouah et al., 2025).
    """

    name: ClassVar[str] = "caf"
    family: ClassVar[Family] = Family.IGNORANT
    condition: ClassVar[str] = "n > 2m"
    scored: ClassVar[bool] = True
    needs_updates: ClassVar[bool] = False

    def most_malicious(self, num_sampled: int) -> int:
        """Leave more than nobody when 2m~ have gone."""
        return (num_sampled - 1) // 2

    def decide(self, cohort: Cohort) -> Decision:
        """Filter on distances alone; a client's score in the verdict is the weight that it lost."""
        assumed = self.assumed_malicious(len(cohort))
        weights = _filtered(pairwise_squared_l2(cohort.rows, cohort.threads), assumed)
        kept = weights > 0
        return Decision(
            weights=weights / np.sort(weights).sum(),
            kept=kept,
            scores=1 - weights,
            num_malicious=assumed,
            reasons=["lies farthest along the direction of largest variance"] * len(cohort),
            cut=float(1 - weights[kept].min()),
        )


def _filtered(squared_distances: Floats, assumed: int) -> Floats:
    """Return the weights of least variance on the way from all 1 to a sum of at most n - 2m~."""
    count = len(squared_distances)
    weights = best = np.ones(count)
    least = math.inf
    # Each step takes all weight from somebody, so that there are n at most.
    while np.sort(weights).sum() > count - 2 * assumed:
        variance, scores = principal_scores(squared_distances, weights)
        if variance < least:
            least, best = variance, weights
        largest = float(scores.max())
        if not largest > 0:
            break
        parts = scores / largest
        weights = np.where(parts < _FARTHEST, weights * (1 - parts), 0.0)
    return best
