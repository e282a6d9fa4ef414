"""What may stand before a rule: updates mixed, grouped or clipped, so that the rule meets a calmer round.

To add one: a class here, and one line in PREAGGREGATORS.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fedra import checks
from fedra.cohort import Cohort, Flags, Floats, RuleState
from fedra.kernels import mixed_rows, norms, pairwise_squared_l2
from fedra.kernels.rows import as_rows
from fedra.names import nearest, parse_spec
from fedra.rules.base import Decision, Family, Rule, StatefulRule
from fedra.rules.malicious import AssumesMalicious, exact
from fedra.seeding import generator
from fedra.untrusted import clipped

_RULE = "rule."
_FORM = "write a name of fedra.PREAGGREGATORS, with its parameters after it: 'bucketing size=4'"


@dataclass(frozen=True, eq=False, kw_only=True)
class Mixing:
    """New rows, each a weighted sum of a round's updates: `matrix` (k, n), and the k quantities that go with them."""

    matrix: Floats
    quantities: Floats


class Preaggregator(ABC):
    """Makes new rows of a round's updates, for a rule to decide on: a frozen dataclass with one method, `mix`.

    `needs_updates` is as a rule's: False where adding one vector to all updates adds it to all new rows. A class states
    ``believes_claims = False`` where no claim changes its rows: a rule that ignores quantities then still does.
    """

    name: ClassVar[str]
    needs_updates: ClassVar[bool] = True
    believes_claims: ClassVar[bool] = True

    @abstractmethod
    def mix(self, cohort: Cohort, num_malicious: int, rng: np.random.Generator) -> Mixing:
        """Return the new rows in terms of the old; `num_malicious` of the clients are assumed to be malicious."""

    def num_rows(self, num_sampled: int) -> int:
        """Return how many rows become of so many clients."""
        return num_sampled


@dataclass(frozen=True, kw_only=True)
class NNM(Preaggregator):
    r"""Nearest-neighbour mixing: each update becomes the mean of its n-m nearest, itself included; so do claims.

    Allouah et al., AISTATS 2023.
    """

    name: ClassVar[str] = "nnm"
    needs_updates: ClassVar[bool] = False
    believes_claims: ClassVar[bool] = False

    def mix(self, cohort: Cohort, num_malicious: int, rng: np.random.Generator) -> Mixing:
        """Average neighbours; of those equally near, the client itself, then the first."""
        count = len(cohort)
        neighbours = max(1, count - num_malicious)
        distances = pairwise_squared_l2(cohort.rows, cohort.threads)
        # Before those equal to it: else the last of equal clients would be part of no row, and count as left out.
        np.fill_diagonal(distances, -1.0)
        order = np.argsort(distances, axis=1, kind="stable")
        matrix = np.zeros((count, count))
        np.put_along_axis(matrix, order[:, :neighbours], 1 / neighbours, axis=1)
        return Mixing(matrix=matrix, quantities=matrix @ cohort.quantities)


@dataclass(frozen=True, kw_only=True)
class Bucketing(Preaggregator):
    r"""Random groups of `size` clients, each its mean by claims; claims add up (Karimireddy et al., ICLR 2022)."""

    name: ClassVar[str] = "bucketing"
    needs_updates: ClassVar[bool] = False

    size: int = 2

    def __post_init__(self) -> None:
        checks.whole("size", self.size, 1)

    def num_rows(self, num_sampled: int) -> int:
        """Return the number of groups, the last of which may be smaller."""
        return -(-num_sampled // self.size)

    def mix(self, cohort: Cohort, num_malicious: int, rng: np.random.Generator) -> Mixing:
        """Draw the groups."""
        count = len(cohort)
        matrix = np.zeros((self.num_rows(count), count))
        matrix[np.arange(count) // min(self.size, count), rng.permutation(count)] = 1.0
        matrix *= cohort.quantities
        totals = matrix.sum(axis=1)
        return Mixing(matrix=matrix / totals[:, np.newaxis], quantities=totals)


@dataclass(frozen=True, kw_only=True)
class ARC(Preaggregator):
    r"""Adaptive clipping: the :math:`\lfloor 2m(n-m)/n \rfloor` longest updates are cut to the next longest.

    Allouah et al., ICLR 2025.
    """

    name: ClassVar[str] = "arc"
    believes_claims: ClassVar[bool] = False

    def mix(self, cohort: Cohort, num_malicious: int, rng: np.random.Generator) -> Mixing:
        """Shrink the longest."""
        count = len(cohort)
        lengths = norms(cohort.rows, cohort.threads)
        longest = 2 * num_malicious * (count - num_malicious) // count
        bound = np.sort(lengths)[max(0, count - 1 - longest)]
        factors = np.ones(count)
        far = lengths > bound
        factors[far] = bound / lengths[far]
        return Mixing(matrix=np.diag(factors), quantities=cohort.quantities)


PREAGGREGATORS: dict[str, type[Preaggregator]] = {"nnm": NNM, "bucketing": Bucketing, "arc": ARC}


@dataclass(frozen=True, kw_only=True)
class Preceded(StatefulRule):
    """A rule that decides on what a pre-aggregator makes of a round, for instance the median of mixed neighbours.

    Weights are the clients' own: what each contributes to the result by the rows that it is part of. A client is kept
    where it contributes to a row that the rule keeps.

    Attributes:
        rule: the rule.
        before: the pre-aggregator.
        malicious_ratio: the share of malicious clients that it assumes, where the rule assumes none.
        seed: of what it draws.
    """

    rule: Rule
    before: Preaggregator
    malicious_ratio: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.rule, Rule):
            raise TypeError(checks.wrong("rule", self.rule, "a rule such as fedra.Median()"))
        if not isinstance(self.before, Preaggregator):
            raise TypeError(checks.wrong("before", self.before, "a pre-aggregator such as NNM()"))
        checks.ratio(self.malicious_ratio)
        checks.whole("seed", self.seed)
        ignorant = self.rule.family is Family.IGNORANT
        # What other rules state in their class follows from the two here.
        about = {
            "name": f"{self.before.name}+{self.rule.name}",
            "family": Family.AWARE if ignorant and self.before.believes_claims else self.rule.family,
            "scored": self.rule.scored,
            "weighted": self.rule.weighted,
            "needs_updates": self.rule.needs_updates or self.before.needs_updates,
        }
        for name, value in about.items():
            object.__setattr__(self, name, value)

    def for_federation(
        self, *, num_clients: int | None = None, malicious_ratio: float | None = None, setting: str | None = None
    ) -> Preceded:
        """Let the rule know of the federation."""
        rule = self.rule.for_federation(num_clients=num_clients, malicious_ratio=malicious_ratio, setting=setting)
        ratio = self.malicious_ratio if malicious_ratio is None else malicious_ratio
        return dataclasses.replace(self, rule=rule, malicious_ratio=ratio)

    def refusal(self, num_sampled: int) -> str:
        """Return why the rule cannot decide on as many rows as become of so many clients."""
        rows = self.before.num_rows(num_sampled)
        refusal = self._rule_for(num_sampled).refusal(rows)
        return f"after {self.before.name}: {refusal}" if refusal else ""

    def init(self, dimension: int) -> RuleState:
        """Return the number of rounds, and what the rule remembers."""
        remembered = self.rule.init(dimension) if isinstance(self.rule, StatefulRule) else {}
        return {"rounds": np.zeros((), dtype=np.int64), **{f"{_RULE}{name}": a for name, a in remembered.items()}}

    def restore(self, state: RuleState, dimension: int) -> RuleState:
        """Check the number of rounds, and let the rule check the rest."""
        if not isinstance(state, Mapping) or not all(isinstance(name, str) for name in state):
            raise ValueError(f"it is no table of named arrays, as {self.name} has it")
        counter, inner = state.get("rounds"), _below_rule(state)
        if not isinstance(counter, np.ndarray) or counter.dtype != np.int64 or counter.shape != ():
            raise ValueError(f"rounds is {clipped(counter, 60)}; it counts the rounds before")
        # One that cannot be counted on would raise in the next round.
        if not 0 <= counter < np.iinfo(np.int64).max:
            raise ValueError(f"rounds is {clipped(counter, 60)}; it counts the rounds before")
        if other := [name for name in state if name != "rounds" and not name.startswith(_RULE)]:
            raise ValueError(f"it holds {clipped(', '.join(other))}, which {self.name} has not")
        if isinstance(self.rule, StatefulRule):
            inner = self.rule.restore(inner, dimension)
        elif inner:
            raise ValueError(f"it holds {clipped(', '.join(inner))}, and {self.rule.name} remembers nothing")
        return {"rounds": counter, **{f"{_RULE}{name}": array for name, array in inner.items()}}

    def decide(self, cohort: Cohort, state: RuleState) -> tuple[Decision, RuleState]:
        """Mix, let the rule decide, and say what that means for each client."""
        rounds = int(state["rounds"])
        rule = self._rule_for(len(cohort))
        rng = generator(self.seed, f"rules/{self.before.name}", rounds)
        mixing = self.before.mix(cohort, self._assumed_malicious(len(cohort)), rng)
        rows = as_rows(mixed_rows(cohort.rows, mixing.matrix, cohort.threads))
        mixed = Cohort(
            rows=rows, quantities=mixing.quantities, client_ids=tuple(range(len(rows))), threads=cohort.threads
        )
        decision, inner_state = rule._decide(mixed, _below_rule(state) or None)
        after: dict[str, Any] = {"rounds": np.asarray(rounds + 1, dtype=np.int64)}
        after |= {f"{_RULE}{name}": array for name, array in (inner_state or {}).items()}
        return self._of_clients(mixing.matrix, mixed, decision), after

    def _of_clients(self, matrix: Floats, mixed: Cohort, decision: Decision) -> Decision:
        """Return a decision on mixed rows as one on the clients they are made of."""
        part = matrix > 0
        kept_rows = np.ones(len(mixed), dtype=bool) if decision.kept is None else decision.kept
        kept: Flags = np.asarray(part[kept_rows].any(axis=0))
        update = decision.update
        weights = None
        if decision.weights is not None:
            weights = decision.weights @ matrix
            if update is None:
                update = mixed_rows(mixed.rows, decision.weights[np.newaxis, :], mixed.threads)[0]
            weights = weights / weights.sum() if weights.sum() > 0 else weights
        return Decision(
            weights=weights,
            update=update,
            kept=kept,
            scores=_of_rows(part, decision.scores),
            num_malicious=decision.num_malicious,
            cut=decision.cut,
        )

    def _assumed_malicious(self, num_sampled: int) -> int:
        if isinstance(self.rule, AssumesMalicious):
            return self.rule.assumed_malicious(num_sampled)
        return min(math.ceil(num_sampled * exact(self.malicious_ratio)), (num_sampled - 1) // 2)

    def _rule_for(self, num_sampled: int) -> Rule:
        """Return the rule, assuming as many malicious rows as there are malicious clients: each spoils at most one."""
        if not isinstance(self.rule, AssumesMalicious):
            return self.rule
        rule = dataclasses.replace(self.rule, num_malicious=self.rule.assumed_malicious(num_sampled))
        return _without_federation(rule)


def _below_rule(state: RuleState) -> RuleState:
    return {name.removeprefix(_RULE): array for name, array in state.items() if name.startswith(_RULE)}


def _without_federation(rule: AssumesMalicious) -> AssumesMalicious:
    """Return the rule without its N, which counts clients and not rows."""
    return dataclasses.replace(rule, num_clients=None) if hasattr(rule, "num_clients") else rule  # type: ignore[call-arg]


def _of_rows(part: Any, scores: Floats | None) -> Floats | None:
    """Return for each client the least score of the rows that it is part of; NaN where it is part of none."""
    if scores is None:
        return None
    least: Floats = np.where(part, scores[:, np.newaxis], np.inf).min(axis=0)
    return np.where(part.any(axis=0), least, np.nan)


def make_preaggregator(name: str, **parameters: Any) -> Preaggregator:
    """Make a pre-aggregator by its registry name; unknown names and parameters raise, and list the valid ones."""
    if name not in PREAGGREGATORS:
        raise ValueError(f"unknown pre-aggregator {name!r}{nearest(name, PREAGGREGATORS)}")
    found = PREAGGREGATORS[name]
    valid = [field.name for field in dataclasses.fields(found)]  # type: ignore[arg-type]
    for parameter in parameters:
        if parameter not in valid:
            raise TypeError(f"pre-aggregator {name!r} has no parameter {parameter!r}{nearest(parameter, valid)}")
    return found(**parameters)


def parse_preaggregator(text: str) -> tuple[str, dict[str, Any]]:
    """Read a pre-aggregator's name, and parameters after it: "nnm", or "bucketing size=4"."""
    checks.text("before", text, _FORM)
    return parse_spec(text, "before", _FORM)
