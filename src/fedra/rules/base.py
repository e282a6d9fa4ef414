"""What every rule is: screened cohort in, verdict out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fedra.alarms import round_warnings
from fedra.cohort import Cohort, Flags, Floats, RuleState, Verdict
from fedra.kernels import weighted_sum
from fedra.screening import Screened, screen
from fedra.untrusted import clipped


class Family(StrEnum):
    """How a rule treats the quantities that clients claim."""

    IGNORANT = "quantity-ignorant"
    AWARE = "quantity-aware"
    ROBUST = "quantity-robust"


@dataclass(frozen=True, eq=False, kw_only=True)
class Decision:
    """A rule's word on the usable clients of a round; what is left at None is filled in for it.

    Give `weights` and the update is their weighted sum; give `update` where it is none. `kept` defaults to all. A
    `note` says why the round has no update at all: nobody is part of it then, whatever else is given.
    """

    weights: Floats | None = None
    update: npt.NDArray[Any] | None = None
    kept: Flags | None = None
    scores: Floats | None = None
    num_malicious: int | None = None
    reasons: Sequence[str] | None = None
    implied_quantities: Floats | None = None
    cut: float | None = None
    note: str = ""


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
    def decide(self, cohort: Cohort, *args: Any, **kwargs: Any) -> Any:
        """Return the `Decision` on a cohort of at least one usable client, of a size that `refusal` accepts.

        A rule has ``decide(self, cohort) -> Decision``, one that remembers the form of `StatefulRule`.
        """

    def refusal(self, num_sampled: int) -> str:
        """Return why this rule cannot decide on a round of this many clients; empty where it can."""
        return ""

    def for_federation(
        self, *, num_clients: int | None = None, malicious_ratio: float | None = None, setting: str | None = None
    ) -> Rule:
        """Return the rule for a federation of which so much is known; None: not known.

        Args:
            num_clients: N, how many clients the federation has.
            malicious_ratio: the share of them that is malicious; None leaves it to what the rule assumes.
            setting: "fixed" where every round has the same number of malicious clients, else "dynamic".
        """
        return self

    def __call__(
        self,
        updates: Any,
        quantities: Any,
        client_ids: Sequence[Any] | None = None,
        *,
        state: RuleState | None = None,
        threads: int | None = None,
    ) -> Verdict:
        """Screen a round and decide on it.

        Args:
            updates: (n, d) matrix or n vectors, float32 or float64; NumPy, CPU torch, or anything with `__array__`
                or DLPack. Read in place. Float16 and bfloat16 count as float32. Or files that `fedra.open_updates`
                opened.
            quantities: n numbers, how many samples each client claims.
            client_ids: n identifiers for the verdict; default 0 .. n-1.
            state: what a stateful rule remembers, the last verdict's `state`; None before the first round.
            threads: how many threads to use, None for one per core; the verdict does not depend on it.

        Raises:
            ValueError: where the caller is at fault (lengths that differ, a round too small for the rule as called).
                Clients cannot make it raise: what they get wrong stands in the verdict.
        """
        if (judged_by := getattr(updates, "judged_by", None)) is not None:
            verdict: Verdict = judged_by(self, quantities, client_ids, state=state, threads=threads)
            return verdict
        screened = screen(updates, quantities, client_ids, threads=threads)
        if len(screened) and (refusal := self.refusal(len(screened))):
            raise ValueError(refusal)
        return self.judge(screened, state)

    def judge(self, screened: Screened, state: RuleState | None = None) -> Verdict:
        """Decide on a round that was screened already; never raises for what clients sent.

        Most clients decide what length a round's updates have, unless the server does: where a state is of another
        length, the round has no update and the state stays.
        """
        cohort = screened.cohort
        if not len(screened):
            return self._no_update(screened, state, "nobody took part in this round")
        if not len(cohort):
            return self._no_update(screened, state, "nobody was left after screening")
        if refusal := self.refusal(len(cohort)):
            return self._no_update(screened, state, f"too few clients were left after screening: {refusal}")
        if unfit := self._unfit(state, cohort.rows.dimension):
            return self._no_update(screened, state, f"the rule's state is not of these updates: {unfit}")
        decision, state = self._decide(cohort, state)
        return self._verdict(screened, decision, state)

    def _unfit(self, state: RuleState | None, dimension: int) -> str:
        """Return why a state cannot be used for updates of this length; empty where it can."""
        return ""

    def _decide(self, cohort: Cohort, state: RuleState | None) -> tuple[Decision, RuleState | None]:
        """Decide without memory; `StatefulRule` has its own."""
        return self.decide(cohort), None

    def _no_update(self, screened: Screened, state: RuleState | None, note: str) -> Verdict:
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
            state=state if isinstance(self, StatefulRule) else None,
        )

    def _verdict(self, screened: Screened, decision: Decision, state: RuleState | None) -> Verdict:
        cohort = screened.cohort
        if decision.note:
            return replace(
                self._no_update(screened, state, decision.note),
                scores=_spread(screened.usable, decision.scores, np.nan),
                implied_quantities=_spread(screened.usable, decision.implied_quantities, np.nan),
            )
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
            state=state,
            warnings=round_warnings(
                client_ids=screened.client_ids,
                kept=everyone,
                quantities=np.where(screened.usable, screened.quantities, np.nan),
                weights=weights,
                implied=implied,
            ),
        )


class StatefulRule(Rule):
    """A rule that remembers: what it needs of earlier rounds comes in with the cohort, and goes out with the decision.

    A state is a dictionary of named NumPy arrays of numbers, never changed in place; that is what run folders, state
    files and grids keep, bit for bit.
    """

    @abstractmethod
    def init(self, dimension: int) -> RuleState:
        """Return the state before the first round, for updates of this length."""

    @abstractmethod
    def decide(self, cohort: Cohort, state: RuleState) -> tuple[Decision, RuleState]:
        """Decide on a cohort as `Rule.decide` does, and return the state after it."""

    def restore(self, state: RuleState, dimension: int) -> RuleState:
        """Return a state if it can be this rule's, else raise ValueError: a file may hold anything.

        Called with every state that comes in. A rule whose arrays grow with the rounds checks them in its own way.
        """
        expected = self.init(dimension)
        if not isinstance(state, Mapping) or state.keys() != expected.keys():
            found = ", ".join(map(str, state)) if isinstance(state, Mapping) else type(state).__name__
            raise ValueError(f"it holds {clipped(found) or 'nothing'}, {self.name} has {', '.join(expected)}")
        for name, like in expected.items():
            array = state[name]
            if not isinstance(array, np.ndarray) or array.dtype != like.dtype or array.shape != like.shape:
                raise ValueError(f"{name} is {_form(array)}, {self.name} has {_form(like)}")
            if array.dtype.kind in "fc" and not np.isfinite(array).all():
                raise ValueError(f"{name} holds values that are not finite")
        return {name: state[name] for name in expected}

    def _unfit(self, state: RuleState | None, dimension: int) -> str:
        try:
            if state is not None:
                self.restore(state, dimension)
        except ValueError as error:
            return str(error)
        return ""

    def _decide(self, cohort: Cohort, state: RuleState | None) -> tuple[Decision, RuleState | None]:
        return self.decide(cohort, self.init(cohort.rows.dimension) if state is None else state)


def _form(value: Any) -> str:
    if not isinstance(value, np.ndarray):
        return f"a {clipped(type(value).__name__)}"
    return f"{clipped(value.dtype)} of shape {value.shape}"


def initial_state(rule: Rule, dimension: int) -> RuleState | None:
    """Return the state of a rule before the first round; None for one that remembers nothing."""
    return rule.init(dimension) if isinstance(rule, StatefulRule) else None


def _spread(usable: Flags, values: Any, absent: Any) -> Any:
    """Return the usable clients' values at their places among all clients."""
    if values is None:
        return None
    everyone = np.full(len(usable), absent, dtype=np.asarray(values).dtype)
    everyone[usable] = values
    return everyone


def ascending_order(scores: Floats) -> npt.NDArray[np.intp]:
    """Return the clients from the least score up; ties by index."""
    return np.argsort(scores, kind="stable")
