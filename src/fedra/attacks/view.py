"""What a threat model shows an attacker in a round, and nothing else: a type for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fedra.cohort import Floats, RuleState
from fedra.redteam import Judge
from fedra.rules.base import Rule

Matrix = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]
Relabel = Callable[[Labels], Labels]
Poison = Callable[[npt.NDArray[Any], Labels], tuple[npt.NDArray[Any], Labels]]

# "own": the model and the attacker's own clients; "all": the honest clients of the round as well; "rule": and the rule.
Knowledge = Literal["own", "all", "rule"]

# Honest gradients that an attack may say it reads: `observed` is whichever the view makes of it.
Reading = Literal["own", "pool", "observed"]


def _cannot_poison(_poison: Poison) -> Matrix:
    raise ValueError("this attacker cannot train on inputs of its own making; give the view `poisoned`")


@dataclass(frozen=True, eq=False, kw_only=True)
class AttackerView:
    """The global model and the malicious clients' own clean data and gradients; no benign client, no rule.

    Attributes:
        round: the round's number, from 0.
        weights: (d,) the global model as it was sent out.
        num_sampled: n, clients in the round.
        num_malicious: m, how many of them are the attacker's.
        num_classes: C, classes of the data.
    """

    round: int
    weights: Matrix
    num_sampled: int
    num_malicious: int
    num_classes: int
    own: Callable[[], Matrix]
    pool: Callable[[], Matrix]
    relabelled: Callable[[Relabel], Matrix]
    poisoned: Callable[[Poison], Matrix] = _cannot_poison

    @cached_property
    def own_gradients(self) -> Matrix:
        """(m, d) what the round's malicious clients would honestly send."""
        return self.own()

    @cached_property
    def pool_gradients(self) -> Matrix:
        """(p, d) honest gradients of p = min(50, M) clients drawn from all the malicious ones."""
        return self.pool()

    @property
    def observed(self) -> Matrix:
        """The honest updates that this attacker takes its mean and deviation from: those of its own clients."""
        return self.pool_gradients

    def relabelled_gradients(self, relabel: Relabel) -> Matrix:
        """(m, d) gradients of the round's malicious clients on their own data, with the labels that `relabel` makes."""
        return self.relabelled(relabel)

    def poisoned_gradients(self, poison: Poison) -> Matrix:
        """(m, d) gradients of the round's malicious clients on what `poison` makes of their own inputs and labels."""
        return self.poisoned(poison)


@dataclass(frozen=True, eq=False, kw_only=True)
class InformedView(AttackerView):
    """That, and what the honest clients of the round send.

    Attributes:
        honest_updates: (n-m, d), read-only.
        honest_claims: (n-m,), read-only.
    """

    honest_updates: Matrix
    honest_claims: Floats

    @property
    def observed(self) -> Matrix:
        """The honest updates that this attacker takes its mean and deviation from: all of the round."""
        return self.honest_updates if len(self.honest_updates) else self.pool_gradients


@dataclass(frozen=True, eq=False, kw_only=True)
class WhiteBoxView(InformedView):
    """That, and the rule with what it remembers.

    Attributes:
        rule: the rule.
        rule_state: what it remembers; None for a rule that remembers nothing.
        judge: what the rule would make of the round if the attacker's clients sent (m, d) updates with (m,) claims.
    """

    rule: Rule
    rule_state: RuleState | None
    judge: Judge


VIEWS: dict[Knowledge, type[AttackerView]] = {"own": AttackerView, "all": InformedView, "rule": WhiteBoxView}
