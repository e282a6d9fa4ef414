"""The median of each coordinate, by quantity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedra.cohort import Cohort
from fedra.kernels import column_weighted_median
from fedra.rules.base import Decision, Family
from fedra.rules.trusted_weights import TrustedWeights


@dataclass(frozen=True, kw_only=True)
class WeightedMedian(TrustedWeights):
    r"""Per coordinate the least value at which the running weight reaches half; at just half, its mean with the next.

    Folklore; as a base rule in Dahan & Levy, NeurIPS 2024. `weights` says which quantities it believes.
    """

    name: ClassVar[str] = "weighted-median"
    family: ClassVar[Family] = Family.AWARE
    weighted: ClassVar[bool] = False
    needs_updates: ClassVar[bool] = False

    def decide(self, cohort: Cohort) -> Decision:
        """Take the middle of the weight; whoever has none has no part."""
        believed = self.believed(cohort)
        return Decision(update=column_weighted_median(cohort.rows, believed, cohort.threads), kept=believed > 0)
