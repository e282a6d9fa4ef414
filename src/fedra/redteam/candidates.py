"""What colluders might do, in numbers that mean the same in every round."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Self

import numpy as np

from fedra.cohort import Floats


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """What colluders might do, in numbers that mean the same in another round.

    Attributes:
        base: 0 starts from the honest mean by quantity, 1 from the plain mean.
        direction: number in `DIRECTIONS`.
        other: number of a second direction.
        blend: its share, 0 for none.
        length: how far, in units of the honest spread.
        jitter: how far colluders differ from one another, in the same units.
        claim: what each claims.
        decoys: how many of them lie far out instead.
        decoy_claim: what those claim.
    """

    base: int = 1
    direction: int = 0
    other: int = 0
    blend: float = 0.0
    length: float = 1.0
    jitter: float = 0.0
    claim: float = 1.0
    decoys: int = 0
    decoy_claim: float = 1.0

    def as_numbers(self) -> Floats:
        """Return it as an array, to be kept between rounds."""
        return np.array([float(value) for value in dataclasses.astuple(self)])

    @classmethod
    def from_numbers(cls, numbers: Floats) -> Self:
        """Return what `as_numbers` was made of; numbers out of range, from a file, are put into it."""
        base, direction, other, blend, length, jitter, claim, decoys, decoy_claim = map(float, numbers)
        last = len(DIRECTIONS) - 1
        return cls(
            base=int(np.clip(base, 0, 1)),
            direction=int(np.clip(direction, 0, last)),
            other=int(np.clip(other, 0, last)),
            blend=float(np.clip(blend, 0, 1)),
            length=max(length, 0.0),
            jitter=max(jitter, 0.0),
            claim=max(claim, 1.0),
            decoys=int(max(decoys, 0)),
            decoy_claim=max(decoy_claim, 1.0),
        )


CANDIDATE_NUMBERS = len(dataclasses.fields(Candidate))
DIRECTIONS = (
    "against the mean by quantity",
    "against the plain mean",
    "minus the deviations",
    "minus the mean's signs",
    "minus the mean's signs by deviation",
    "first principal direction",
    "second principal direction",
    "to the most deviant client",
    "random signs",
)
AGAINST, AGAINST_PLAIN, DEVIATIONS, SIGNS, SIGNED_DEVIATIONS, FIRST, SECOND, DEVIANT, RANDOM = range(9)
