"""The quantity-weighted geometric median."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedra import checks
from fedra.cohort import Cohort, shares
from fedra.kernels import distances_to_mean
from fedra.rules.base import Decision, Family
from fedra.rules.trusted_weights import TrustedWeights


@dataclass(frozen=True, kw_only=True)
class RFA(TrustedWeights):
    r"""The point of least quantity-weighted distance to all updates, by smoothed Weiszfeld (Pillutla et al., 2022).

    From the weighted mean, `iterations` times: :math:`z \leftarrow \sum_i \beta_i g^i / \sum_i \beta_i` with
    :math:`\beta_i = q^i / \max(\nu, \|z - g^i\|_2)`; :math:`\nu` is `smoothing` times the first weighted mean distance.
    `weights` says which quantities it believes.
    """

    name: ClassVar[str] = "rfa"
    family: ClassVar[Family] = Family.AWARE
    needs_updates: ClassVar[bool] = False

    iterations: int = 4
    smoothing: float = 1e-6

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.whole("iterations", self.iterations, 1)
        checks.number("smoothing", self.smoothing, above=0, wanted="a positive number such as 1e-6")

    def decide(self, cohort: Cohort) -> Decision:
        """Iterate on the weights alone; the point itself is only needed at the end."""
        believed = self.believed(cohort)
        parts = weights = shares(believed)
        floor = 0.0
        for iteration in range(self.iterations):
            distances = distances_to_mean(cohort.rows, weights, cohort.threads)
            if iteration == 0:
                floor = self.smoothing * float(parts @ distances)
            distances = np.maximum(distances, floor)
            least = distances.min()
            if least == 0:
                break
            # Relative to the least distance, so that the quotient cannot overflow.
            pulls = parts * (least / distances)
            weights = pulls / pulls.sum()
        return Decision(weights=weights, kept=believed > 0)
