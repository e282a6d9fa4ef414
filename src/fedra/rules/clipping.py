"""Centred clipping: every update's difference from a remembered centre counts up to a radius."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from fedra import checks
from fedra.cohort import Cohort, Floats, RuleState
from fedra.kernels import distances_to_mean, weighted_sum
from fedra.rules.base import Decision, Family, StatefulRule
from fedra.rules.trusted_weights import TrustedWeights, Weights


@dataclass(frozen=True, kw_only=True)
class CenteredClipping(TrustedWeights, StatefulRule):
    r"""A centre that every client moves by its difference from it, cut to a radius.

    .. math:: v \leftarrow v + \sum_i \frac{w_i}{W} (g^i - v) \min(1, \tau / \|g^i - v\|_2)

    `iterations` times in each round; v starts at the last round's result, and at zero in the first round (Karimireddy
    et al., ICML 2021). Nobody moves it by more than :math:`\tau w_i / W` a step, which is :math:`\tau / n` by default.

    Attributes:
        radius: :math:`\tau`; None takes the median distance to the centre, anew in each step.
        iterations: steps in a round.
        weights: "equal", the default, or which quantities it believes.
    """

    name: ClassVar[str] = "centered-clipping"
    family: ClassVar[Family] = Family.IGNORANT
    weighted: ClassVar[bool] = False

    radius: float | None = None
    iterations: int = 3
    weights: Weights = field(default="equal", metadata={"later": "equal"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.radius is not None:
            wanted = "a positive number, or None for the median distance to the centre"
            checks.number("radius", self.radius, above=0, wanted=wanted)
        checks.whole("iterations", self.iterations, 1)

    def init(self, dimension: int) -> RuleState:
        """Start at zero."""
        return {"centre": np.zeros(dimension)}

    def decide(self, cohort: Cohort, state: RuleState) -> tuple[Decision, RuleState]:
        """Move the centre: it stays a weighted mean of the old one and the updates, so only weights are iterated."""
        believed = self.believed(cohort)
        total = float(believed.sum())
        rows = cohort.rows.with_row(state["centre"])
        weights = np.zeros(len(rows))
        weights[-1] = 1.0
        for _ in range(self.iterations):
            pulls = believed * self._factors(distances_to_mean(rows, weights, cohort.threads)[:-1])
            # Divided after the sum: where all count in full, exactly nothing of the old centre is left.
            weights *= 1 - pulls.sum() / total
            weights[:-1] += pulls / total
        update = weighted_sum(rows, weights, cohort.threads)
        # What was returned, bit for bit: float64 holds a float32 exactly, and converts back to it.
        return Decision(update=update, kept=believed > 0), {"centre": update.astype(np.float64)}

    def _factors(self, distances: Floats) -> Floats:
        """Return by how much each difference counts, 1 where it is within the radius."""
        radius = float(np.median(distances)) if self.radius is None else float(self.radius)
        factors = np.ones(len(distances))
        far = distances > radius
        factors[far] = radius / distances[far]
        return factors
