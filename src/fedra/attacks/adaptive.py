"""An attack that searches for what the rule at hand lets through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedra import checks
from fedra.attacks.base import AttackState, Sent, StatefulAttack
from fedra.attacks.view import Knowledge, WhiteBoxView
from fedra.redteam import CANDIDATE_NUMBERS, Candidate, Search


@dataclass(frozen=True, kw_only=True)
class Adaptive(StatefulAttack):
    """White-box: searches what turns the aggregate furthest from the honest mean, calling the rule itself.

    Directions, lengths, claims, decoys and differences between colluders are those of `fedra.redteam.worst_case`. What
    was found is kept for some rounds, with directions and lengths taken anew from each round's honest clients.

    Attributes:
        budget: how often the rule is called in a search.
        every: rounds between searches.
    """

    name: ClassVar[str] = "adaptive"

    budget: int = 120
    every: int = 5

    def __post_init__(self) -> None:
        checks.whole("budget", self.budget, 1)
        checks.whole("every", self.every, 1)

    @property
    def knowledge(self) -> Knowledge:
        """It sees the honest clients and calls the rule."""
        return "rule"

    def init(self, dimension: int) -> AttackState:
        """Start with nothing chosen: a search before the first round."""
        return {"choice": np.zeros(CANDIDATE_NUMBERS), "until": np.zeros((), dtype=np.int64)}

    def __call__(self, view: WhiteBoxView, rng: np.random.Generator, state: AttackState) -> tuple[Sent, AttackState]:
        """Search where it is time to, and send what was chosen."""
        seed = int(rng.integers(2**62))
        if not len(view.honest_updates):
            return Sent(updates=-view.own_gradients), state
        search = Search(view.judge, view.honest_updates, view.honest_claims, view.num_malicious, seed=seed)
        after = state
        if view.round >= int(state["until"]):
            best = search.run(self.budget)
            chosen = best.candidate
            after = {"choice": chosen.as_numbers(), "until": np.asarray(view.round + self.every, dtype=np.int64)}
        else:
            chosen = Candidate.from_numbers(state["choice"])
        updates, claims = search.sent(chosen)
        return Sent(updates=updates, claims=claims), after
