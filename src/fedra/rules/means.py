"""Means over all clients: by claimed quantity, unweighted, and by quantity with norms bounded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedra import checks
from fedra.cohort import Cohort
from fedra.kernels import norms, weighted_sum
from fedra.rules.base import Decision, Family, Rule


@dataclass(frozen=True, kw_only=True)
class FedAvg(Rule):
    r"""The mean weighted by claimed quantity, :math:`\sum_i q^i g^i / \sum_i q^i` (McMahan et al., 2017)."""

    name: ClassVar[str] = "fedavg"
    family: ClassVar[Family] = Family.AWARE
    needs_updates: ClassVar[bool] = False

    def decide(self, cohort: Cohort) -> Decision:
        """Weigh every client by its claim."""
        return Decision(weights=cohort.shares)


@dataclass(frozen=True, kw_only=True)
class Uniform(Rule):
    r"""The plain mean, :math:`\frac1n \sum_i g^i`."""

    name: ClassVar[str] = "uniform"
    family: ClassVar[Family] = Family.IGNORANT
    needs_updates: ClassVar[bool] = False

    def decide(self, cohort: Cohort) -> Decision:
        """Weigh all clients alike."""
        return Decision(weights=np.full(len(cohort), 1.0 / len(cohort)))


@dataclass(frozen=True, kw_only=True)
class NormBound(Rule):
    r"""Updates cut to norm B, then weighted by quantity: :math:`\sum_i q^i g^i \min(1, B/\|g^i\|_2) / \sum_i q^i`.

    `bound` is B; None takes the median norm of the cohort at hand (Sun et al., 2019).
    """

    name: ClassVar[str] = "norm-bound"
    family: ClassVar[Family] = Family.AWARE

    bound: float | None = None

    def __post_init__(self) -> None:
        if self.bound is not None:
            wanted = "a positive number, or None for the cohort's median norm"
            checks.number("bound", self.bound, above=0, wanted=wanted)

    def decide(self, cohort: Cohort) -> Decision:
        """Shrink what is longer than the bound, then average by claim."""
        lengths = norms(cohort.rows, cohort.threads)
        bound = float(np.median(lengths)) if self.bound is None else float(self.bound)
        longer = lengths > bound
        factors = np.ones(len(cohort))
        factors[longer] = bound / lengths[longer]
        update = weighted_sum(cohort.rows, cohort.shares * factors, cohort.threads)
        return Decision(weights=cohort.shares, update=update)
