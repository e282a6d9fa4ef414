"""Rules with memory that users could have written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedra.cohort import Cohort, RuleState
from fedra.rules import Decision, Family, StatefulRule


@dataclass(frozen=True, kw_only=True)
class Diary(StatefulRule):
    """Weighs clients by their distance from the mean of all rounds before, leaves out the farthest, and writes each
    round down: its memory grows.
    """

    name: ClassVar[str] = "diary"
    family: ClassVar[Family] = Family.IGNORANT
    scored: ClassVar[bool] = True

    def init(self, dimension: int) -> RuleState:
        return {"means": np.zeros((0, dimension)), "sizes": np.zeros(0, dtype=np.int64)}

    def restore(self, state: RuleState, dimension: int) -> RuleState:
        if state.keys() != {"means", "sizes"} or state["means"].shape != (len(state["sizes"]), dimension):
            raise ValueError("no diary of this model")
        return dict(state)

    def decide(self, cohort: Cohort, state: RuleState) -> tuple[Decision, RuleState]:
        rows = np.asarray(cohort.rows, dtype=np.float64)
        before = state["means"]
        centre = before.mean(axis=0) if len(before) else np.zeros(rows.shape[1])
        distances = np.sqrt(np.square(rows - centre).sum(axis=1))
        kept = np.ones(len(rows), dtype=bool)
        kept[int(distances.argmax())] = len(rows) == 1
        weights = np.where(kept, 1 / (1 + distances), 0)
        weights /= weights.sum()
        after = {
            "means": np.vstack([before, rows[kept].mean(axis=0)]),
            "sizes": np.append(state["sizes"], len(rows)),
        }
        return Decision(weights=weights, kept=kept, scores=distances), after


@dataclass(frozen=True, kw_only=True)
class OtherDiary(Diary):
    """Another rule whose memory looks the same."""

    name: ClassVar[str] = "other-diary"


@dataclass(frozen=True, kw_only=True)
class Spoilt(Diary):
    """Would remember infinity in its second round."""

    name: ClassVar[str] = "spoilt"

    def decide(self, cohort: Cohort, state: RuleState) -> tuple[Decision, RuleState]:
        decision, after = super().decide(cohort, state)
        if len(after["sizes"]) == 2:
            after["means"] = after["means"] + np.inf
        return decision, after


@dataclass(frozen=True, kw_only=True)
class Scribbles(Diary):
    """Remembers what is no array of numbers."""

    name: ClassVar[str] = "scribbles"
    kept: object = 3

    def decide(self, cohort: Cohort, state: RuleState) -> tuple[Decision, RuleState]:
        decision, after = super().decide(cohort, state)
        return decision, {**after, "sizes": self.kept}
