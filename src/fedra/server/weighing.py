"""Claims that make another strategy's weighted average weigh clients as the rule does."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from fedra.screening import LARGEST_CLAIM

# Shares closer than this are the same ones, rounded differently.
_SAME = 1e-9
# The least share becomes a number of examples of at least this, where there is room, so that rounding does not matter.
_FINE = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Weighing:
    """What each client claims to the inner strategy, None where claims stay as they are, and the weights that follow.

    Inner strategies divide claims by their sum, so `shares` is just that.
    """

    claims: Sequence[int] | None
    shares: Sequence[float]


def weigh(claims: Sequence[float], weights: Sequence[float]) -> Weighing | None:
    """Return the claims to pass on for these weights; None where the weights are none (negative, NaN, all zero).

    Claims stay where they give these weights already. Else they are whole numbers in proportion to the weights, in
    units of the median claim: one client's claim, however large, moves neither the proportions nor the total.
    """
    wanted = _shares(weights)
    if wanted is None:
        return None
    claimed = [claim / sum(claims) for claim in claims]
    if all(math.isclose(a, b, rel_tol=_SAME) for a, b in zip(claimed, wanted, strict=True)):
        return Weighing(claims=None, shares=claimed)
    numbers = whole_numbers(wanted, statistics.median_low(claims))
    total = sum(numbers)
    return Weighing(claims=numbers, shares=[number / total for number in numbers])


def examples(claims: Sequence[float], weights: Sequence[float]) -> list[int]:
    """Return whole numbers of examples in proportion to the weights, or all alike where these are none."""
    weighing = weigh(claims, weights)
    if weighing is None:
        return [1] * len(claims)
    if weighing.claims is None and all(float(claim).is_integer() for claim in claims):
        return [int(claim) for claim in claims]
    return list(weighing.claims or whole_numbers(weighing.shares, statistics.median_low(claims)))


def whole_numbers(shares: Sequence[float], usual: float) -> list[int]:
    """Return whole numbers in proportion to shares that add up to 1; the mean share becomes `usual`, or a multiple."""
    if math.isclose(min(shares), max(shares), rel_tol=_SAME):
        return [max(1, round(usual))] * len(shares)
    examples = [share * len(shares) * usual for share in shares]
    factor = max(1.0, _FINE / min(number for number in examples if number > 0))
    factor = min(factor, LARGEST_CLAIM / max(examples))
    return [round(number * factor) for number in examples]


def _shares(weights: Sequence[float]) -> list[float] | None:
    largest = max(weights, default=0.0)
    if not (0 < largest < math.inf and all(weight >= 0 for weight in weights)):
        return None
    scaled = [weight / largest for weight in weights]
    total = sum(scaled)
    return [weight / total for weight in scaled]


def plain_claim(claim: float) -> float:
    """Return a claim as the number that it was sent as: whole ones as integers."""
    return int(claim) if claim.is_integer() else claim
