"""Rules that look at each coordinate alone: median and trimmed mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedra.cohort import Cohort
from fedra.kernels import column_median, column_trimmed_mean
from fedra.rules.base import Decision, Family, Rule
from fedra.rules.malicious import AssumesMalicious


@dataclass(frozen=True, kw_only=True)
class Median(Rule):
    r"""The median of each coordinate, :math:`\operatorname{med}_i g^i_k` (Yin et al., 2018)."""

    name: ClassVar[str] = "median"
    family: ClassVar[Family] = Family.IGNORANT
    weighted: ClassVar[bool] = False
    needs_updates: ClassVar[bool] = False

    def decide(self, cohort: Cohort) -> Decision:
        """Take the middle value, or the mean of the two middle values."""
        return Decision(update=column_median(cohort.rows, cohort.threads))


@dataclass(frozen=True, kw_only=True)
class TrimmedMean(AssumesMalicious):
    r"""The mean of each coordinate without its m~ largest and m~ smallest values (Yin et al., 2018)."""

    name: ClassVar[str] = "trimmed-mean"
    family: ClassVar[Family] = Family.IGNORANT
    weighted: ClassVar[bool] = False
    condition: ClassVar[str] = "n > 2m"
    needs_updates: ClassVar[bool] = False

    def most_malicious(self, num_sampled: int) -> int:
        """Leave at least one value."""
        return (num_sampled - 1) // 2

    def decide(self, cohort: Cohort) -> Decision:
        """Trim m~ values at either end."""
        assumed = self.assumed_malicious(len(cohort))
        return Decision(update=column_trimmed_mean(cohort.rows, assumed, cohort.threads), num_malicious=assumed)
