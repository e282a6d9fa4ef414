"""The worst that malicious clients who know everything can do to a rule: a search that calls the rule itself.

`worst_case` takes a round's honest updates and answers what colluders would send, and what came of it. It is a search,
not a proof: what it finds can be done, and what it does not find may still be possible.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedra import checks
from fedra.cohort import Floats, RuleState
from fedra.redteam.candidates import CANDIDATE_NUMBERS, DIRECTIONS, Candidate
from fedra.redteam.honest import Honest
from fedra.redteam.judging import Judge, Judgement, Vectors, largest_passing_claim
from fedra.redteam.outcomes import Harm, Trial, WorstCase, harm
from fedra.redteam.search import Progress, Search
from fedra.rules.base import Rule
from fedra.screening import screen

__all__ = [
    "CANDIDATE_NUMBERS",
    "DIRECTIONS",
    "Candidate",
    "Harm",
    "Honest",
    "Judge",
    "Judgement",
    "Search",
    "Trial",
    "WorstCase",
    "harm",
    "largest_passing_claim",
    "worst_case",
]


def worst_case(
    rule: Rule,
    updates: Any,
    quantities: Any,
    num_malicious: int,
    *,
    state: RuleState | None = None,
    budget: int = 120,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> WorstCase:
    """Search for what attackers who know the honest clients and the rule would send in a round.

    Args:
        rule: the rule, as it is called in the round.
        updates: (h, d) the honest clients' updates, float32 or float64.
        quantities: (h,) their true quantities, which they claim.
        num_malicious: m, how many attackers join them.
        state: what a stateful rule remembers.
        budget: how often the rule may be called.
        seed: of what is drawn; the same seed gives the same answer.
        threads: of the rule; None: one per core.
        progress: called with the number of calls made and the budget, after each call.

    Raises:
        ValueError: where what is given of a client would not pass screening: it would not be part of the round.
    """
    rows = [np.asarray(row) for row in updates]
    claims = np.asarray(quantities, dtype=np.float64)
    if len(rows) != claims.size or not rows:
        raise ValueError(f"{len(rows)} updates and {claims.size} quantities; give the same number, at least one")
    for number, reason in enumerate(screen(rows, claims, threads=threads).reasons):
        if reason:
            raise ValueError(f"client {number} is not usable: {reason}")
    count = checks.whole("num_malicious", num_malicious, 1)
    checks.whole("seed", seed)
    places = np.arange(len(rows), len(rows) + count)

    def judge(sent: Vectors, claimed: Floats) -> Judgement:
        verdict = rule([*rows, *sent], np.concatenate([claims, claimed]), state=state, threads=threads)
        return Judgement.of(verdict, places)

    return Search(judge, rows, claims, count, seed=seed).run(checks.whole("budget", budget, 1), progress)
