"""Krum and its kin: trust the updates that have many others close by."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedra import checks
from fedra.cohort import Cohort
from fedra.kernels import (
    column_mean_around_median,
    pairwise_squared_l2,
    repeated_nearest,
    squared_l2_triangle,
)
from fedra.kernels import nearest_sums as nearest_sums  # FedRA's scores take it from here
from fedra.rules.base import Decision, Family, ascending_order
from fedra.rules.malicious import AssumesMalicious


@dataclass(frozen=True, kw_only=True)
class _KrumLike(AssumesMalicious):
    r"""Shared by Krum and mKrum: :math:`s(i) = \sum_{j: i \to j} \|g^i - g^j\|_2^2` over n-m~-2 nearest others."""

    family: ClassVar[Family] = Family.IGNORANT
    condition: ClassVar[str] = "n > 2m+2"
    scored: ClassVar[bool] = True

    def most_malicious(self, num_sampled: int) -> int:
        """Return the largest m~ with n > 2m~+2."""
        return (num_sampled - 3) // 2

    @abstractmethod
    def num_chosen(self, num_sampled: int, assumed: int) -> int:
        """Return how many of n clients are averaged."""

    def decide(self, cohort: Cohort) -> Decision:
        """Average the clients of least score."""
        count = len(cohort)
        assumed = self.assumed_malicious(count)
        scores = nearest_sums(squared_l2_triangle(cohort.rows, cohort.threads), count - assumed - 2)
        chosen = ascending_order(scores)[: self.num_chosen(count, assumed)]
        kept = np.zeros(count, dtype=bool)
        kept[chosen] = True
        cut = float(scores[chosen[-1]])
        return Decision(
            weights=kept / len(chosen),
            kept=kept,
            scores=scores,
            num_malicious=assumed,
            reasons=[f"score {score:.4g} is not among the {len(chosen)} least" for score in scores],
            cut=cut,
        )


@dataclass(frozen=True, kw_only=True)
class Krum(_KrumLike):
    r"""The one update of least score (Blanchard et al., 2017).

    :math:`s(i) = \sum_{j: i \to j} \|g^i - g^j\|_2^2` over the n-m~-2 nearest others; ties go to the first client.
    """

    name: ClassVar[str] = "krum"
    needs_updates: ClassVar[bool] = False

    def num_chosen(self, num_sampled: int, assumed: int) -> int:
        """Choose one."""
        return 1


@dataclass(frozen=True, kw_only=True)
class MultiKrum(_KrumLike):
    r"""The plain mean of the c updates of least Krum score, scored once (Blanchard et al., 2017).

    `num_selected` is c; None takes n-m~-2.
    """

    name: ClassVar[str] = "multi-krum"
    needs_updates: ClassVar[bool] = False

    num_selected: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_selected is not None:
            checks.whole("num_selected", self.num_selected, 1)

    def refusal(self, num_sampled: int) -> str:
        """Refuse as Krum does, and where fewer clients are there than shall be selected."""
        if self.num_selected is not None and not self.clamp and self.num_selected > num_sampled:
            return (
                f"{self.name} needs n >= num_selected, but has n = {num_sampled} and num_selected = "
                f"{self.num_selected}; sample more clients, lower num_selected, or pass clamp=True"
            )
        return super().refusal(num_sampled)

    def num_chosen(self, num_sampled: int, assumed: int) -> int:
        """Choose c."""
        return num_sampled - assumed - 2 if self.num_selected is None else min(self.num_selected, num_sampled)


@dataclass(frozen=True, kw_only=True)
class Bulyan(AssumesMalicious):
    r"""Krum again and again, then a mean around the median of each coordinate (El Mhamdi et al., 2018).

    Krum is scored anew after each pick until :math:`\theta = n - 2\tilde m` clients are chosen; each coordinate then is
    the mean of the :math:`\theta - 2\tilde m` chosen values closest to their median.
    """

    name: ClassVar[str] = "bulyan"
    family: ClassVar[Family] = Family.IGNORANT
    weighted: ClassVar[bool] = False
    condition: ClassVar[str] = "n >= 4m+3"
    needs_updates: ClassVar[bool] = False

    def most_malicious(self, num_sampled: int) -> int:
        """Return the largest m~ with n >= 4m~+3."""
        return (num_sampled - 3) // 4

    def decide(self, cohort: Cohort) -> Decision:
        """Pick theta clients, then average near their median."""
        count = len(cohort)
        assumed = self.assumed_malicious(count)
        distances = pairwise_squared_l2(cohort.rows, cohort.threads)
        chosen = repeated_nearest(distances, assumed, count - 2 * assumed)
        del distances
        kept = np.zeros(count, dtype=bool)
        kept[chosen] = True
        near = len(chosen) - 2 * assumed
        return Decision(
            update=column_mean_around_median(cohort.rows.take(chosen), near, cohort.threads),
            kept=kept,
            num_malicious=assumed,
            reasons=[f"not among the {len(chosen)} that repeated Krum chose"] * count,
        )
