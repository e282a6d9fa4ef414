"""Centred trimmed meta-aggregation: a robust centre, then the mean of the nearest by weight."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np

from fedra import checks
from fedra.cohort import Cohort, Flags, Floats, number_text, shares
from fedra.kernels import distances_to_mean, distances_to_point
from fedra.rules.base import Decision, Family, Rule
from fedra.rules.coordinates import Median
from fedra.rules.geometric import RFA
from fedra.rules.malicious import exact
from fedra.rules.trusted_weights import TrustedWeights
from fedra.rules.weighted_median import WeightedMedian

Base = Literal["weighted-median", "rfa", "median"]
BASES: dict[Base, type[Rule]] = {"weighted-median": WeightedMedian, "rfa": RFA, "median": Median}

# A remainder of a client's weight that is rounding.
_NOTHING = 1e-12


@dataclass(frozen=True, kw_only=True)
class CTMA(TrustedWeights):
    r"""The weighted mean of the clients nearest to a robust centre, up to 1-λ of the weight.

    `base` finds a centre; clients are taken by their distance to it, nearest first, until the weight
    :math:`(1 - \lambda) \sum_i w_i` is reached; the last one's weight is cut to fit (Dahan & Levy, NeurIPS 2024).

    Attributes:
        base: the rule that finds the centre: "weighted-median", "rfa" or "median".
        malicious_ratio: :math:`\lambda`, the share of the weight that may be malicious; None: that of the federation
            where it is known, else 0.1.
    """

    name: ClassVar[str] = "ctma"
    family: ClassVar[Family] = Family.AWARE
    scored: ClassVar[bool] = True
    needs_updates: ClassVar[bool] = False

    base: Base = "weighted-median"

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.choice("base", self.base, BASES)

    @property
    def _uses_ratio(self) -> bool:
        return True

    def decide(self, cohort: Cohort) -> Decision:
        """Find the centre, and average the nearest."""
        believed = self.believed(cohort)
        distances = self._distances(cohort, believed)
        taken = self._taken(distances, believed)
        kept = taken > 0
        share = number_text(100 * (1 - self.assumed_ratio))
        return Decision(
            weights=shares(taken),
            kept=kept,
            scores=distances,
            reasons=[
                f"distance {number_text(distance)} to the centre is beyond the nearest {share}% of the weight"
                for distance in distances
            ],
            cut=float(distances[kept].max()),
        )

    def _distances(self, cohort: Cohort, believed: Floats) -> Floats:
        """Return each client's distance to what the base rule makes of those who count for anything."""
        counting: Flags = believed > 0
        places = np.flatnonzero(counting)
        part = dataclasses.replace(
            cohort,
            rows=cohort.rows.take(places),
            quantities=believed[counting],
            client_ids=tuple(cohort.client_ids[place] for place in places),
        )
        decision: Decision = BASES[self.base]().decide(part)
        if decision.update is None:
            weights = np.zeros(len(cohort))
            weights[counting] = decision.weights
            return distances_to_mean(cohort.rows, weights, cohort.threads)
        return distances_to_point(cohort.rows, decision.update, cohort.threads)

    def _taken(self, distances: Floats, believed: Floats) -> Floats:
        """Return the weight that each client counts with; equally far, the lighter first."""
        order = np.lexsort((believed, distances))
        ordered = believed[order]
        before = np.cumsum(ordered) - ordered
        budget = float((1 - exact(self.assumed_ratio)) * Fraction(float(ordered.sum())))
        left = np.clip(budget - before, 0.0, ordered)
        taken = np.empty(len(believed))
        taken[order] = np.where(left > _NOTHING * ordered, left, 0.0)
        return taken
