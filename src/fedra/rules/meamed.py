"""The mean around the median of each coordinate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedra.cohort import Cohort
from fedra.kernels import column_mean_around_median
from fedra.rules.base import Decision, Family
from fedra.rules.malicious import AssumesMalicious


@dataclass(frozen=True, kw_only=True)
class MeaMed(AssumesMalicious):
    r"""Per coordinate the mean of the n-m~ values nearest its median (Xie et al., 2018)."""

    name: ClassVar[str] = "meamed"
    family: ClassVar[Family] = Family.IGNORANT
    weighted: ClassVar[bool] = False
    condition: ClassVar[str] = "n > 2m"
    needs_updates: ClassVar[bool] = False

    def most_malicious(self, num_sampled: int) -> int:
        """Leave a majority around the median."""
        return (num_sampled - 1) // 2

    def decide(self, cohort: Cohort) -> Decision:
        """Average near the median."""
        assumed = self.assumed_malicious(len(cohort))
        update = column_mean_around_median(cohort.rows, len(cohort) - assumed, cohort.threads)
        return Decision(update=update, num_malicious=assumed)
