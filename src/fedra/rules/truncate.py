"""Capped quantities, then a weighted trimmed mean."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedra import checks
from fedra.cohort import Cohort, Floats
from fedra.kernels import column_weighted_trimmed_mean
from fedra.rules.base import Decision, Family, Rule
from fedra.rules.malicious import exact


def truncation_cap(quantities: Floats, *, alpha: float = 0.1, share: float = 0.5) -> float:
    r"""Return the largest integer U with :math:`\sum_{top\,k} \min(q,U) \le \alpha^* \sum \min(q,U)`, or infinity.

    k = int(n * alpha + 1). Infinity: nothing needs to be cut, or all quantities are equal.
    """
    largest = float(quantities.max())
    if quantities.min() == largest:
        return math.inf
    count = int(len(quantities) * exact(alpha) + 1)
    descending = np.sort(quantities)[::-1]
    exponent = -int(np.frexp(largest)[1])  # sums of huge claims stay finite in this unit

    def allowed(cap: int) -> bool:
        capped = np.ldexp(np.minimum(descending, float(cap)), exponent)
        return bool(capped[:count].sum() <= share * capped.sum())

    # The share of the top k grows with U, so bisection finds the edge; a scan would let one huge claim stall it.
    high = math.ceil(largest)
    if allowed(high):
        return math.inf
    low = 1
    if not allowed(low):
        return 1.0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if allowed(middle) else (low, middle)
    return float(low)


@dataclass(frozen=True, kw_only=True)
class Truncate(Rule):
    r"""Quantities capped so that no few clients hold the majority, then a weighted trimmed mean (Portnoy et al., 2022).

    Quantities become :math:`\min(q, U)`, U the largest integer at which the top int(n*alpha+1) clients hold at most
    `share` (:math:`\alpha^*`) of the total; each coordinate is the weighted mean strictly between its weighted
    quantiles `beta` and 1 - `beta`.
    """

    name: ClassVar[str] = "truncate"
    family: ClassVar[Family] = Family.ROBUST
    weighted: ClassVar[bool] = False
    needs_updates: ClassVar[bool] = False

    alpha: float = 0.1
    share: float = 0.5
    beta: float = 0.1

    def __post_init__(self) -> None:
        for name, low, high in (("alpha", 0.0, 1.0), ("share", 0.0, 1.0), ("beta", 0.0, 0.5)):
            wanted = f"a number in [{low:g}, {high:g})"
            checks.number(name, getattr(self, name), least=low, below=high, wanted=wanted)

    def decide(self, cohort: Cohort) -> Decision:
        """Cap, then trim."""
        cap = truncation_cap(cohort.quantities, alpha=self.alpha, share=self.share)
        capped = np.minimum(cohort.quantities, cap)
        return Decision(update=column_weighted_trimmed_mean(cohort.rows, capped, self.beta, cohort.threads))
