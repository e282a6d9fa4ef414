"""How many colluders a round may hold, how probable that is, and how probable over many rounds."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from fedra.assess.federation import Federation
from fedra.cohort import Floats

# What counts as improbable enough, in a round and over all of them.
RISK = 0.01


@dataclass(frozen=True, eq=False, kw_only=True)
class Colluders:
    """The number of malicious clients in a round, over the federation's rounds.

    Attributes:
        probabilities: of 0, 1, 2, ... of them in a round.
        expected: their mean.
        usual: more than so many come in at most 1% of rounds.
        most: the chance that any of all rounds holds more than so many is at most 1%.
        rounds: T.
    """

    probabilities: Floats = field(repr=False)
    expected: float
    usual: int
    most: int
    rounds: int

    @classmethod
    def of(cls, federation: Federation) -> Colluders:
        """Return that of a federation."""
        total, liars, sampled = federation.num_clients, federation.num_malicious, federation.num_sampled
        found = hypergeometric(total, liars, sampled)
        tails = [more_than(found, number) for number in range(len(found))]
        return cls(
            probabilities=found,
            expected=sampled * liars / total,
            usual=next(number for number, tail in enumerate(tails) if tail <= RISK),
            most=next(number for number, tail in enumerate(tails) if over_rounds(tail, federation.rounds) <= RISK),
            rounds=federation.rounds,
        )

    def more_than(self, number: int) -> float:
        """Return the probability that a round holds more than `number`."""
        return more_than(self.probabilities, number)

    def ever_more_than(self, number: int) -> float:
        """Return the probability that at least one of all rounds does."""
        return over_rounds(self.more_than(number), self.rounds)


def hypergeometric(total: int, marked: int, drawn: int) -> Floats:
    r"""Return the probabilities of 0 .. min(M, n) marked among n drawn of N without replacement.

    .. math:: p(m) = \binom{M}{m} \binom{N-M}{n-m} \Big/ \binom{N}{n}

    From the mode outwards by the ratios of neighbours, so that nothing overflows and small tails keep their digits.
    """
    least, most = max(0, drawn - (total - marked)), min(marked, drawn)
    mode = min(max((drawn + 1) * (marked + 1) // (total + 2), least), most)
    sizes = np.zeros(most + 1)
    sizes[mode] = 1.0
    for number in range(mode, most):
        ratio = (marked - number) * (drawn - number) / ((number + 1) * (total - marked - drawn + number + 1))
        sizes[number + 1] = sizes[number] * ratio
    for number in range(mode, least, -1):
        ratio = number * (total - marked - drawn + number) / ((marked - number + 1) * (drawn - number + 1))
        sizes[number - 1] = sizes[number] * ratio
    return np.asarray(sizes / math.fsum(sizes))


def more_than(probabilities: Floats, number: int) -> float:
    """Return the probability of more than `number`."""
    return 1.0 if number < 0 else min(math.fsum(probabilities[number + 1 :]), 1.0)


def over_rounds(probability: float, rounds: int) -> float:
    r"""Return :math:`1 - (1 - p)^T`, the probability that it happens in at least one of T independent rounds."""
    return 1.0 if probability >= 1 else -math.expm1(rounds * math.log1p(-probability))
