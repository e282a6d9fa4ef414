"""The point of least Huber loss: a mean of those near it, a geometric median of those far away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedra import checks
from fedra.cohort import Cohort, Flags, Floats, shares
from fedra.kernels import column_weighted_median, distances_to_mean, distances_to_point
from fedra.rules.base import Decision, Family
from fedra.rules.trusted_weights import TrustedWeights


@dataclass(frozen=True, kw_only=True)
class Huber(TrustedWeights):
    r"""The point of least Huber loss :math:`\sum_i w_i\, \varphi(\|s - g^i\|_2; T / \sqrt{q^i})`.

    :math:`\varphi(u; T) = u^2/2` up to T, and :math:`T u - T^2/2` beyond (Zhao, Yu & Wan, AAAI 2024). From the weighted
    median, which nobody pulls far, `iterations` times: the mean with weights
    :math:`w_i \min(1, T / (\sqrt{q^i}\, \|s - g^i\|_2))`. Distances shrink as :math:`1/\sqrt q`, so who claims more
    must be nearer. With ``weights="equal"`` all claims are taken for 1.

    Attributes:
        threshold: T, the distance at which one sample counts no more in full; None takes the median of
            :math:`\sqrt{q^i}\, \|s - g^i\|_2`, anew in each step.
        iterations: steps.
    """

    name: ClassVar[str] = "huber"
    family: ClassVar[Family] = Family.AWARE
    needs_updates: ClassVar[bool] = False

    threshold: float | None = None
    iterations: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.threshold is not None:
            wanted = "a positive number, or None for the median of distances times sqrt(quantity)"
            checks.number("threshold", self.threshold, above=0, wanted=wanted)
        checks.whole("iterations", self.iterations, 1)

    def decide(self, cohort: Cohort) -> Decision:
        """Iterate on the weights alone; the point itself is only needed at the end."""
        believed = self.believed(cohort)
        parts = weights = shares(believed)
        roots = np.ones(len(cohort)) if self.weights == "equal" else np.sqrt(cohort.quantities)
        start = column_weighted_median(cohort.rows, believed, cohort.threads)
        distances = distances_to_point(cohort.rows, start, cohort.threads)
        for step in range(self.iterations):
            if step > 0:
                distances = distances_to_mean(cohort.rows, weights, cohort.threads)
            pulls = parts * self._factors(roots * distances, believed > 0)
            weights = pulls / pulls.sum()
        return Decision(weights=weights, kept=believed > 0)

    def _factors(self, scaled: Floats, counting: Flags) -> Floats:
        """Return by how much each client counts, in proportion to ``min(1, T / scaled)``."""
        among = scaled[counting]
        threshold = float(np.median(among)) if self.threshold is None else float(self.threshold)
        # Where all are beyond it, T cancels out, and must not make all factors vanish.
        threshold = max(threshold, float(among.min()))
        if threshold == 0:
            return np.asarray(scaled == 0, dtype=np.float64)
        factors: Floats = threshold / np.maximum(scaled, threshold)
        return factors
