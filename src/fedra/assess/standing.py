"""How many attackers who know everything a rule stands: searched for, round by round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fedra.assess.rounds import HonestRound
from fedra.cohort import RuleState
from fedra.redteam import DIRECTIONS, worst_case
from fedra.redteam.outcomes import harm
from fedra.rules.base import Rule

# Up to so many attackers every number is looked at; beyond, doubled and then halved.
_EVERY_NUMBER = 10

# Called before each search with the number of attackers, and as the rule is called.
Step = Callable[[], None]


@dataclass(frozen=True, kw_only=True)
class Found:
    """The worst that so many attackers did to any of the rounds that were looked at.

    Attributes:
        attackers: how many of the round's clients.
        cosine: between the rule's step and the honest mean; 0 without a step.
        displacement: the distance between the two, in lengths of the honest mean.
        weight: the attackers'; None for rules without weights.
        has_update: whether there was a step at all.
        claim: what an attacker claimed.
        direction: where they pushed, in words.
    """

    attackers: int
    cosine: float
    displacement: float
    weight: float | None
    has_update: bool
    claim: float | None
    direction: str

    @property
    def turned(self) -> bool:
        """Whether the step points against the honest mean: to first order it undoes what honest clients learn."""
        return self.cosine < 0

    @property
    def stopped(self) -> bool:
        """Whether the round has no step."""
        return not self.has_update


@dataclass(frozen=True, kw_only=True)
class Standing:
    """What was found for a rule.

    Attributes:
        found: by number of attackers, ascending, from 0.
        stands: the largest number up to which no search turned or stopped a round.
        turned_at: the smallest number that turned one; None: no number that was looked at did.
        stopped_at: the smallest number that left one without a step.
        limit: the largest number that would be looked at: less than half of the round.
    """

    found: tuple[Found, ...]
    stands: int
    turned_at: int | None
    stopped_at: int | None
    limit: int


def standing(
    rule: Rule,
    rounds: Sequence[HonestRound],
    states: Sequence[RuleState | None],
    *,
    budget: int,
    seed: int,
    step: Step = lambda: None,
) -> Standing:
    """Search for the worst that 1, 2, ... attackers can do, until they turn the rule's step or are half of the round.

    More attackers can do what fewer can, since one of them may behave as an honest client; so in large rounds their
    number is doubled until the step turns, and the first number at which it does is found by halving the gap.
    """
    limit = (len(rounds[0]) - 1) // 2
    found = {0: _without(rule, rounds, states)}

    def look(number: int) -> Found:
        if number not in found:
            found[number] = _worst(rule, rounds, states, number, budget=budget, seed=seed, step=step)
        return found[number]

    if limit <= _EVERY_NUMBER:
        for number in range(1, limit + 1):
            if look(number).turned:
                break
    else:
        _first(limit, lambda number: look(number).turned)
        _first(limit, lambda number: look(number).turned or look(number).stopped)
    ordered = tuple(found[number] for number in sorted(found))
    turned = [each.attackers for each in ordered if each.turned]
    stopped = [each.attackers for each in ordered if each.stopped]
    bad_at = min([*turned, *stopped], default=limit + 1)
    return Standing(
        found=ordered,
        stands=max([each.attackers for each in ordered if each.attackers < bad_at], default=0),
        turned_at=min(turned, default=None),
        stopped_at=min(stopped, default=None),
        limit=limit,
    )


def _first(limit: int, is_bad: Callable[[int], bool]) -> None:
    """Look at the numbers that it takes to find the first bad one of 1 .. limit."""
    good, number = 0, 1
    while not is_bad(number):
        if number == limit:
            return
        good, number = number, min(2 * number, limit)
    bad = number
    while bad - good > 1:
        middle = (good + bad) // 2
        if is_bad(middle):
            bad = middle
        else:
            good = middle


def _without(rule: Rule, rounds: Sequence[HonestRound], states: Sequence[RuleState | None]) -> Found:
    """Return the worst of the rounds in which nobody attacks."""
    outcomes = []
    for round_, state in zip(rounds, states, strict=True):
        verdict = rule(round_.updates, round_.quantities, state=state, threads=1)
        outcomes.append((harm(verdict.update, round_.mean), verdict.update is not None, round_))
    worst, has_update, round_ = max(outcomes, key=lambda outcome: outcome[0].harm)
    return Found(
        attackers=0,
        cosine=worst.cosine,
        displacement=_relative(worst.distance, round_),
        weight=0.0 if rule.weighted else None,
        has_update=has_update,
        claim=None,
        direction="",
    )


def _worst(
    rule: Rule,
    rounds: Sequence[HonestRound],
    states: Sequence[RuleState | None],
    number: int,
    *,
    budget: int,
    seed: int,
    step: Step,
) -> Found:
    searches = []
    for round_, state in zip(rounds, states, strict=True):
        honest = round_.first(len(round_) - number)
        case = worst_case(
            *(rule, honest.updates, honest.quantities, number),
            state=state, budget=budget, seed=seed, threads=1, progress=lambda done, of: step(),
        )  # fmt: skip
        searches.append((case, honest))
    worst, honest = max(searches, key=lambda search: search[0].harm)
    pushing = worst.claims[min(worst.candidate.decoys, number - 1) :]
    return Found(
        attackers=number,
        cosine=worst.cosine,
        displacement=_relative(worst.distance, honest),
        weight=worst.weight,
        has_update=worst.aggregate is not None,
        claim=float(pushing.max()),
        direction=DIRECTIONS[worst.candidate.direction],
    )


def _relative(distance: float, round_: HonestRound) -> float:
    length = float(np.linalg.norm(round_.mean))
    return distance / length if length > 0 else 0.0
