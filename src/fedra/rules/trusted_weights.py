"""Which weight a rule gives a client's word: all that it claims, a part of it, what its update proves, or none."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Literal, Self

import numpy as np

from fedra import checks
from fedra.cohort import Cohort, Floats
from fedra.kernels import pairwise_squared_l2
from fedra.rules.base import Family, Rule
from fedra.rules.evidence import most_liars, weigh_evidence
from fedra.rules.truncate import truncation_cap

Weights = Literal["claims", "capped", "equal", "verified"]
WEIGHTS: dict[Weights, Family] = {
    "claims": Family.AWARE,
    "capped": Family.ROBUST,
    "equal": Family.IGNORANT,
    "verified": Family.ROBUST,
}

_RATIO = 0.1
# With fewer there are no others to compare a client with.
_LEAST_VERIFIED = 3


def believed_quantities(cohort: Cohort, weights: Weights, malicious_ratio: float = _RATIO) -> Floats:
    """Return the quantity that each client counts with; 0 where an update proves nothing of its claim.

    "claims" are taken as they are; "capped" ones as `Truncate` cuts them, so that the int(n * ratio + 1) largest hold
    at most half; "equal" is 1 for everybody; "verified" is what FedRA's evidence counts, in a unit of its own.
    """
    if weights == "equal":
        return np.ones(len(cohort))
    if weights == "capped":
        return np.minimum(cohort.quantities, truncation_cap(cohort.quantities, alpha=malicious_ratio))
    if weights == "verified":
        liars = most_liars(len(cohort), malicious_ratio)
        return weigh_evidence(pairwise_squared_l2(cohort.rows, cohort.threads), cohort.quantities, liars).counted
    return cohort.quantities


@dataclass(frozen=True, kw_only=True)
class TrustedWeights(Rule):
    """A rule that weighs clients by quantity: `weights` says how much of a claim it believes.

    The family follows from that: quantity-aware for claims, quantity-robust for capped and verified ones, and
    quantity-ignorant where all weigh the same.

    Attributes:
        weights: "claims", "capped", "equal" or "verified"; see `believed_quantities`.
        malicious_ratio: the share of malicious clients that capped and verified quantities allow for; None: that of
            the federation where it is known, else 0.1. Always None where the rule has no use for it.
    """

    weights: Weights = field(default="claims", metadata={"later": "claims"})
    malicious_ratio: float | None = field(default=None, metadata={"later": None})

    def __post_init__(self) -> None:
        checks.choice("weights", self.weights, WEIGHTS)
        if self.malicious_ratio is not None:
            checks.ratio(self.malicious_ratio)
        if not self._uses_ratio:
            object.__setattr__(self, "malicious_ratio", None)
        object.__setattr__(self, "family", WEIGHTS[self.weights])

    @property
    def _uses_ratio(self) -> bool:
        return self.weights in ("capped", "verified")

    @property
    def assumed_ratio(self) -> float:
        """The share of malicious clients that it allows for."""
        return _RATIO if self.malicious_ratio is None else self.malicious_ratio

    def for_federation(
        self, *, num_clients: int | None = None, malicious_ratio: float | None = None, setting: str | None = None
    ) -> Self:
        """Allow for the ratio of the federation, where that is known and of use."""
        if malicious_ratio is None or not self._uses_ratio:
            return self
        return dataclasses.replace(self, malicious_ratio=malicious_ratio)

    def refusal(self, num_sampled: int) -> str:
        """Refuse to verify claims where there are no others to compare a client with."""
        if self.weights != "verified" or num_sampled >= _LEAST_VERIFIED:
            return ""
        return (
            f"{self.name} with weights='verified' needs n >= {_LEAST_VERIFIED}, but has n = {num_sampled}; sample more "
            "clients, or pass weights='capped'"
        )

    def believed(self, cohort: Cohort) -> Floats:
        """Return the quantity that each client counts with."""
        return believed_quantities(cohort, self.weights, self.assumed_ratio)
