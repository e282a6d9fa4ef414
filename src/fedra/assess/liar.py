"""What one client that lies about its quantity gets of a round, by asking the rule itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fedra.assess.rounds import HonestRound
from fedra.cohort import Floats, RuleState, Verdict
from fedra.rules.base import Rule

LARGEST_CLAIM = 1e9
# Claims that are tried beside those of the table, evenly on a logarithmic scale.
_CLAIMS_TRIED = 25


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim, and the share of the result that it buys."""

    claim: float
    share: float


@dataclass(frozen=True, kw_only=True)
class OneLiar:
    """What one liar gets who sends the reverse of the honest mean.

    Attributes:
        claims: by name, `CLAIMS`; the share is the largest of the rounds that were looked at.
        best: the claim that gets most of all that were tried.
        by_pull: whether a share is how far the result moves towards the liar, since the rule has no weights.
    """

    claims: dict[str, Claim]
    best: Claim
    by_pull: bool

    @property
    def any_claim(self) -> bool:
        """Whether it makes no difference what the liar claims."""
        return len({claim.share for claim in self.claims.values()}) == 1


CLAIMS: dict[str, Callable[[Floats], float]] = {
    "median": lambda quantities: float(np.median(quantities)),
    "largest": lambda quantities: float(quantities.max()),
    "all": lambda quantities: float(quantities.sum()),
    "billion": lambda quantities: LARGEST_CLAIM,
}


def one_liar(rule: Rule, rounds: Sequence[HonestRound], states: Sequence[RuleState | None]) -> OneLiar:
    """Let the last client of each round send the reverse of the others' mean, and claim this and that."""
    shares: dict[str, list[Claim]] = {name: [] for name in CLAIMS}
    tried: list[Claim] = []
    by_pull = False
    for round_, state in zip(rounds, states, strict=True):
        honest = round_.first(len(round_) - 1)
        asked = _Asked(rule, honest, state)
        by_pull = by_pull or asked.by_pull
        for name, claimed in CLAIMS.items():
            shares[name].append(asked.share(claimed(honest.quantities)))
        tried += [asked.share(float(claim)) for claim in np.geomspace(1, LARGEST_CLAIM, _CLAIMS_TRIED)]
    found = {name: max(each, key=lambda claim: claim.share) for name, each in shares.items()}
    return OneLiar(claims=found, best=max([*found.values(), *tried], key=lambda claim: claim.share), by_pull=by_pull)


class _Asked:
    """A rule that is asked what it makes of an honest round with one liar."""

    def __init__(self, rule: Rule, honest: HonestRound, state: RuleState | None) -> None:
        self._rule, self._honest, self._state = rule, honest, state
        self._sent = (-honest.mean).astype(honest.updates.dtype)
        self._without: Floats | None = None
        self.by_pull = not rule.weighted

    def share(self, claim: float) -> Claim:
        honest = self._honest
        verdict = self._judged(np.vstack([honest.updates, self._sent]), np.append(honest.quantities, claim))
        if verdict.update is None:
            return Claim(claim=claim, share=0.0)
        if verdict.weights is not None and not self.by_pull:
            return Claim(claim=claim, share=float(verdict.weights[-1]))
        self.by_pull = True
        return Claim(claim=claim, share=self._pull(np.asarray(verdict.update, dtype=np.float64)))

    def _pull(self, result: Floats) -> float:
        """Return the part of the way from the result without the liar to the liar that its presence leads."""
        if self._without is None:
            honest = self._honest
            # Without the liar the round may be too small for the rule.
            too_few = self._rule.refusal(len(honest))
            alone = None if too_few else self._judged(honest.updates, honest.quantities).update
            self._without = honest.mean if alone is None else np.asarray(alone, dtype=np.float64)
        way = self._sent - self._without
        square = float(way @ way)
        return min(max(float((result - self._without) @ way) / square, 0.0), 1.0) if square > 0 else 0.0

    def _judged(self, updates: Floats, quantities: Floats) -> Verdict:
        return self._rule(updates, quantities, state=self._state, threads=1)
