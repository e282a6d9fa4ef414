"""What a rule makes of a round, as its attackers see it, and how far they may go with a claim."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from fedra.cohort import Flags, Floats, Verdict

Vectors = npt.NDArray[Any]

LARGEST_CLAIM = 1e9


@dataclass(frozen=True, eq=False, kw_only=True)
class Judgement:
    """What a rule made of a round, as its attackers see it.

    Attributes:
        update: the aggregate; None where the round has none.
        kept: (m,) which of the attackers are part of it.
        weights: (m,) their weights; None for rules without weights per client.
    """

    update: Vectors | None
    kept: Flags
    weights: Floats | None

    @classmethod
    def of(cls, verdict: Verdict, malicious: npt.NDArray[Any]) -> Self:
        """Return the part of a verdict at the attackers' positions."""
        weights = None if verdict.weights is None else verdict.weights[malicious]
        return cls(update=verdict.update, kept=verdict.kept[malicious], weights=weights)


# What a rule makes of (m, d) updates and (m,) claims of the attackers beside the round's honest clients.
Judge = Callable[[Vectors, Floats], Judgement]


def largest_passing_claim(
    judge: Judge, updates: Vectors, *, largest: float = LARGEST_CLAIM, steps: int = 8
) -> float | None:
    """Return the largest claim, up to `largest`, with which as many attackers are kept as with the claim 1.

    None where nobody is kept with that. From the top down in factors of ten, since a rule need not reject all that is
    larger than what it rejects; then by `steps` halvings of the ratio to the least above it that does not pass.
    """
    wanted = _passing(judge, updates, 1.0)
    if not wanted:
        return None
    failing, claim = math.inf, largest
    while claim > 1 and _passing(judge, updates, claim) < wanted:
        failing, claim = claim, claim / 10
    passing = max(claim, 1.0)
    for _ in range(steps if math.isfinite(failing) else 0):
        middle = math.sqrt(passing * failing)
        if _passing(judge, updates, middle) >= wanted:
            passing = middle
        else:
            failing = middle
    return passing


def _passing(judge: Judge, updates: Vectors, claim: float) -> int:
    return int(judge(updates, np.full(len(updates), claim)).kept.sum())
