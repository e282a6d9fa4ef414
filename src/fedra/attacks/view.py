"""What the threat model shows an attacker in a round, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]
Relabel = Callable[[Labels], Labels]


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

    @cached_property
    def own_gradients(self) -> Matrix:
        """(m, d) what the round's malicious clients would honestly send."""
        return self.own()

    @cached_property
    def pool_gradients(self) -> Matrix:
        """(p, d) honest gradients of p = min(50, M) clients drawn from all the malicious ones."""
        return self.pool()

    def relabelled_gradients(self, relabel: Relabel) -> Matrix:
        """(m, d) gradients of the round's malicious clients on their own data, with the labels that `relabel` makes."""
        return self.relabelled(relabel)
