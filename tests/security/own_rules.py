"""Rules that users could have written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedra import Rule
from fedra.cohort import Cohort, shares
from fedra.rules.base import Decision, Family


@dataclass(frozen=True, kw_only=True)
class KeepAll(Rule):
    """Keeps everybody, weighed by claim."""

    name: ClassVar[str] = "keep-all"
    family: ClassVar[Family] = Family.AWARE
    scored: ClassVar[bool] = True

    def decide(self, cohort: Cohort) -> Decision:
        return Decision(weights=cohort.shares, scores=np.zeros(len(cohort)))


@dataclass(frozen=True, kw_only=True)
class CappedPick(Rule):
    """Drops the first client; believes the others' claims up to a cap."""

    name: ClassVar[str] = "capped-pick"
    family: ClassVar[Family] = Family.ROBUST
    scored: ClassVar[bool] = True

    cap: float = 30.0

    def decide(self, cohort: Cohort) -> Decision:
        kept = np.arange(len(cohort)) > 0
        weights = np.zeros(len(cohort))
        weights[kept] = shares(np.minimum(cohort.quantities[kept], self.cap))
        return Decision(weights=weights, kept=kept, scores=np.zeros(len(cohort)))


@dataclass(frozen=True, kw_only=True)
class GivenWeights(Rule):
    """Keeps everybody under weights that were made up."""

    name: ClassVar[str] = "given-weights"
    family: ClassVar[Family] = Family.IGNORANT
    scored: ClassVar[bool] = True

    weights: tuple[float, ...] = ()

    def decide(self, cohort: Cohort) -> Decision:
        weights = np.resize(np.asarray(self.weights), len(cohort))
        return Decision(weights=weights, scores=np.zeros(len(cohort)))


@dataclass(frozen=True, kw_only=True)
class Signs(Rule):
    """Averages signs of updates: worth nothing on whole models, whose signs do not change."""

    name: ClassVar[str] = "signs"
    family: ClassVar[Family] = Family.IGNORANT
    scored: ClassVar[bool] = True

    step: float = 0.5

    def decide(self, cohort: Cohort) -> Decision:
        rows = np.asarray(cohort.rows)
        kept = np.abs(rows).max(axis=1) < 1
        weights = kept / max(1, kept.sum())
        update = (self.step * weights @ np.sign(rows)).astype(rows.dtype)
        return Decision(weights=weights, kept=kept, update=update, scores=np.abs(rows).max(axis=1).astype(float))
