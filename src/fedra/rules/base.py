"""What every rule is: screened cohort in, verdict out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fedra.alarms import round_warnings
from fedra.cohort import Cohort, Flags, Floats, Verdict
from fedra.kernels import weighted_sum
from fedra.screening import Screened, screen


class Family(StrEnum):
    """How a rule treats the quantities that clients claim."""

    IGNORANT = "quantity-ignorant"
    AWARE = "quantity-aware"
    ROBUST = "quantity-robust"


@dataclass(frozen=True, eq=False, kw_only=True)
class Decision:
    """A rule's word on the usable clients of a round; what is left at None is filled in for it.

    Give `weights` and the update is their weighted sum; give `update` where it is none. `kept` defaults to all.
    """

    weights: Floats | None = None
    update: npt.NDArray[Any] | None = None
    kept: Flags | None = None
    scores: Floats | None = None
    num_malicious: int | None = None
    reasons: Sequence[str] | None = None
    implied_quantities: Floats | None = None
    cut: float | None = None


class Rule(ABC):
    """An aggregation rule: a frozen dataclass with keyword-only parameters and one method, `decide`.

    A class states ``needs_updates = False`` where it may be given whole models instead of updates: adding one vector to
    all clients' adds it to the result and changes no decision. No class inherits that from another.
    """

    name: ClassVar[str]
    family: ClassVar[Family]
    scored: ClassVar[bool] = False
    weighted: ClassVar[bool] = True
    needs_updates: ClassVar[bool] = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # What a subclass adds, clipping for instance, may depend on where zero is: it has to state this for itself.
        if "needs_updates" not in cls.__dict__:
            cls.needs_updates = True

    @abstractmethod
    def decide(self, cohort: Cohort) -> Decision:
        """Decide on a cohort of at least one usable client, of a size that `unmet` accepts."""

    def unmet(self, num_sampled: int) -> str:
        """Return what this rule needs and does not get from a round of this many clients; empty: nothing."""
        return ""

    def __call__(
        self, updates: Any, quantities: Any, client_ids: Sequence[Any] | None = None, *, threads: int | None = None
    ) -> Verdict:
        """Screen a round and decide on it.

        Args:
            updates: (n, d) matrix or n vectors, float32 or float64; NumPy, CPU torch, or anything with `__array__`
                or DLPack. Read in place.
            quantities: n numbers, how many samples each client claims.
            client_ids: n identifiers for the verdict; default 0 .. n-1.
            threads: how many threads to use, None for one per core; the verdict does not depend on it.

        Raises:
            ValueError: where the caller is at fault (lengths that differ, a round too small for the rule as called).
                Clients cannot make it raise: what they get wrong stands in the verdict.
        """
        screened = screen(updates, quantities, client_ids, threads=threads)
        if len(screened) and (unmet := self.unmet(len(screened))):
            raise ValueError(unmet)
        return self.judge(screened)

    def judge(self, screened: Screened) -> Verdict:
        """Decide on a round that was screened already; never raises for what clients sent."""
        cohort = screened.cohort
        if not len(screened):
            return self._no_update(screened, "nobody took part in this round")
        if not len(cohort):
            return self._no_update(screened, "nobody was left after screening")
        if unmet := self.unmet(len(cohort)):
            return self._no_update(screened, f"too few clients were left after screening: {unmet}")
        return self._verdict(screened, self.decide(cohort))

    def _no_update(self, screened: Screened, note: str) -> Verdict:
        count = len(screened)
        return Verdict(
            rule=self.name,
            update=None,
            kept=np.zeros(count, dtype=bool),
            weights=np.zeros(count) if self.weighted else None,
            scores=np.full(count, np.nan) if self.scored else None,
            num_malicious=None,
            reasons=tuple(reason or "not used: this round has no update" for reason in screened.reasons),
            note=note,
            implied_quantities=None,
            cut=None,
            client_ids=screened.client_ids,
            quantities=screened.quantities,
            usable=screened.usable,
        )

    def _verdict(self, screened: Screened, decision: Decision) -> Verdict:
        cohort = screened.cohort
        kept = np.ones(len(cohort), dtype=bool) if decision.kept is None else decision.kept
        update = decision.update
        if update is None:
            if decision.weights is None:
                raise TypeError(f"{type(self).__name__}.decide gave neither weights nor an update")
            update = weighted_sum(cohort.rows, decision.weights, cohort.threads)
        given = decision.reasons or [""] * len(cohort)
        reasons = list(screened.reasons)
        for position, reason, stays in zip(np.flatnonzero(screened.usable), given, kept, strict=True):
            reasons[position] = "" if stays else reason or f"left out by {self.name}"
        everyone: Flags = _spread(screened.usable, kept, False)
        weights = _spread(screened.usable, decision.weights, 0.0)
        implied = _spread(screened.usable, decision.implied_quantities, np.nan)
        return Verdict(
            rule=self.name,
            update=update,
            kept=everyone,
            weights=weights,
            scores=_spread(screened.usable, decision.scores, np.nan),
            num_malicious=decision.num_malicious,
            reasons=tuple(reasons),
            note="",
            implied_quantities=implied,
            cut=decision.cut,
            client_ids=screened.client_ids,
            quantities=screened.quantities,
            usable=screened.usable,
            warnings=round_warnings(
                client_ids=screened.client_ids,
                kept=everyone,
                quantities=np.where(screened.usable, screened.quantities, np.nan),
                weights=weights,
                implied=implied,
            ),
        )


def _spread(usable: Flags, values: Any, absent: Any) -> Any:
    """Return the usable clients' values at their places among all clients."""
    if values is None:
        return None
    everyone = np.full(len(usable), absent, dtype=np.asarray(values).dtype)
    everyone[usable] = values
    return everyone


def least_first(scores: Floats) -> npt.NDArray[np.intp]:
    """Return the clients from the least score up; ties by index."""
    return np.argsort(scores, kind="stable")
