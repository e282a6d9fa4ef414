"""Divide and conquer: outliers along the direction of largest variance, on several random subsets of coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedra import checks
from fedra.cohort import Cohort, Floats, RuleState
from fedra.kernels import pairwise_squared_l2
from fedra.kernels.rows import Rows
from fedra.rules.base import Decision, Family, StatefulRule, ascending_order
from fedra.rules.malicious import AssumesMalicious, exact
from fedra.rules.spectrum import principal_scores
from fedra.seeding import generator
from fedra.untrusted import clipped


@dataclass(frozen=True, kw_only=True)
class DnC(AssumesMalicious, StatefulRule):
    r"""The mean of those who, on no random subset of coordinates, are among the c m~ farthest along its main direction.

    On each subset the score is :math:`\langle g^i - \mu, v \rangle^2`, v the top eigenvector of the covariance
    (Shejwalkar & Houmansadr, NDSS 2021). It remembers how many rounds there were, so that each draws other subsets. The
    score in a verdict is the largest over the subsets, each in units of the largest score that its subset accepts.
    Where nobody passes all subsets, the n - c m~ of least such score are taken.

    Attributes:
        subsets: how many subsets are drawn in a round.
        coordinates: how many coordinates each has; where updates have no more, one subset of all is enough.
        dropped_per_malicious: c, how many are dropped on each subset for each malicious client assumed.
        seed: of what it draws.
    """

    name: ClassVar[str] = "dnc"
    family: ClassVar[Family] = Family.IGNORANT
    condition: ClassVar[str] = "n > 2m"
    scored: ClassVar[bool] = True
    needs_updates: ClassVar[bool] = False

    subsets: int = 5
    coordinates: int = 10_000
    dropped_per_malicious: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.whole("subsets", self.subsets, 1)
        checks.whole("coordinates", self.coordinates, 1)
        checks.number("dropped_per_malicious", self.dropped_per_malicious, above=0)
        checks.whole("seed", self.seed)

    def most_malicious(self, num_sampled: int) -> int:
        """Return the largest m~ with n > 2m~."""
        return (num_sampled - 1) // 2

    def init(self, dimension: int) -> RuleState:
        """Return the number of rounds."""
        return {"rounds": np.zeros((), dtype=np.int64)}

    def restore(self, state: RuleState, dimension: int) -> RuleState:
        """Check that rounds were counted from 0."""
        found = super().restore(state, dimension)
        if found["rounds"] < 0:
            raise ValueError(f"rounds is {clipped(found['rounds'], 60)}; it counts the rounds before")
        return found

    def decide(self, cohort: Cohort, state: RuleState) -> tuple[Decision, RuleState]:
        """Draw the subsets, drop the farthest of each, and average the rest."""
        rounds = int(state["rounds"])
        count = len(cohort)
        assumed = self.assumed_malicious(count)
        accepted = max(1, count - int(exact(self.dropped_per_malicious) * assumed))
        kept = np.ones(count, dtype=bool)
        worst = np.zeros(count)
        for rows in self._subsets(cohort.rows, rounds):
            scores = principal_scores(pairwise_squared_l2(rows, cohort.threads), np.ones(count))[1]
            order = ascending_order(scores)
            kept[order[accepted:]] = False
            worst = np.maximum(worst, _in_units_of(scores, float(scores[order[accepted - 1]])))
        if not kept.any():
            kept[ascending_order(worst)[:accepted]] = True
        decision = Decision(
            weights=kept / kept.sum(),
            kept=kept,
            scores=worst,
            num_malicious=assumed,
            reasons=["among the farthest along the main direction of some coordinates"] * count,
            cut=float(worst[kept].max()),
        )
        return decision, {"rounds": np.asarray(rounds + 1, dtype=np.int64)}

    def _subsets(self, rows: Rows, rounds: int) -> list[Rows]:
        """Return the rows on each subset of coordinates, as copies; the rows themselves where there are no more."""
        if rows.dimension <= self.coordinates:
            return [rows]
        rng = generator(self.seed, "rules/dnc", rounds)
        draws = [
            np.sort(rng.choice(rows.dimension, self.coordinates, replace=False, shuffle=False))
            for _ in range(self.subsets)
        ]
        return rows.columns(draws)


def _in_units_of(scores: Floats, unit: float) -> Floats:
    """Return scores divided by a unit, finite also where it is 0 or tiny."""
    most = float(np.finfo(np.float64).max)
    if unit == 0:
        return np.where(scores > 0, most, 0.0)
    with np.errstate(over="ignore"):
        return np.minimum(scores / unit, most)
