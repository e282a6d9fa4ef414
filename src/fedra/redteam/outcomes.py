"""What an attack did to a round, as a number to search by."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fedra.cohort import Floats
from fedra.redteam.candidates import Candidate
from fedra.redteam.honest import squared_length
from fedra.redteam.judging import Vectors

# Distance counts this much beside direction: it decides between results that are turned alike.
_DISTANCE_SHARE = 0.1


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One call of the rule: what was tried, and what came of it."""

    candidate: Candidate
    harm: float
    cosine: float
    distance: float
    weight: float | None


@dataclass(frozen=True, eq=False, kw_only=True)
class WorstCase:
    """The worst that was found for a round.

    Attributes:
        updates: (m, d) what the attackers send.
        claims: (m,) what they claim.
        aggregate: what the rule made of the round; None where it has no update.
        cosine: between the aggregate and the honest mean by true quantity; 0 without an aggregate.
        distance: between the two.
        weight: the attackers' weight in the aggregate; None for rules without weights per client.
        harm: what was searched for, see `harm`.
        candidate: what the attackers do, in numbers.
        tried: all that was tried, in order.
    """

    updates: Vectors
    claims: Floats
    aggregate: Vectors | None
    cosine: float
    distance: float
    weight: float | None
    harm: float
    candidate: Candidate
    tried: tuple[Trial, ...]


@dataclass(frozen=True, kw_only=True)
class Harm:
    """How far an aggregate is turned from the honest mean: ``harm`` is 1 - cosine, and a tenth of r/(1+r).

    r is the distance to the honest mean in units of that mean. A round without an aggregate counts as zero.
    """

    harm: float
    cosine: float
    distance: float


def harm(aggregate: Vectors | None, honest_mean: Floats) -> Harm:
    """Return how far an aggregate is turned from the honest mean."""
    found = np.zeros_like(honest_mean) if aggregate is None else np.asarray(aggregate, dtype=np.float64)
    size = math.sqrt(squared_length(honest_mean))
    lengths = math.sqrt(squared_length(found)) * size
    cosine = float(found @ honest_mean) / lengths if lengths > 0 else 0.0
    distance = math.sqrt(squared_length(found - honest_mean))
    relative = distance / size if size > 0 else math.inf
    far = relative / (1 + relative) if math.isfinite(relative) else 1.0
    return Harm(harm=1 - cosine + _DISTANCE_SHARE * far, cosine=cosine, distance=distance)
