"""The federation that is assessed: who is in it, who is asked in a round, how many of them lie, for how long."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Self

import numpy as np

from fedra import checks
from fedra.cohort import Floats
from fedra.rules.base import Rule
from fedra.rules.malicious import exact
from fedra.rules.mcne import malicious_total

FEWEST = 3
MOST_CLIENTS = 1_000_000
MOST_ROUNDS = 10**9
MOST_SAMPLES = 1e15
USUAL_SAMPLED = 50
USUAL_RATIO = 0.1
USUAL_ROUNDS = 100
# Without quantities all clients are taken to hold the same number of samples; which one makes no difference.
SAMPLES_EACH = 100

# So fine that ceil(n M / N) is that of the exact fraction for all federations of the largest size, and never above it.
_RATIO_STEPS = 10**12


@dataclass(frozen=True, eq=False, kw_only=True)
class Federation:
    """N clients, of whom M lie; n of them are drawn for each of T rounds.

    Attributes:
        quantities: (N,) the samples that each client holds.
        num_sampled: n, clients in a round, drawn at random without replacement.
        num_malicious: M.
        malicious_ratio: what rules assume.
        rounds: T.
        known: where the quantities come from, as a sentence for readers.
    """

    quantities: Floats = field(repr=False)
    num_sampled: int
    num_malicious: int
    malicious_ratio: float
    rounds: int
    known: str

    @classmethod
    def of(
        cls,
        quantities: Any = None,
        *,
        num_clients: int | None = None,
        num_sampled: int | None = None,
        malicious_ratio: float | None = None,
        num_malicious: int | None = None,
        rounds: int = USUAL_ROUNDS,
        known: str = "",
    ) -> Self:
        """Describe a federation, checked; what is not given is filled in, and `known` says so.

        Args:
            quantities: the samples of each client; None: the same for all.
            num_clients: N, where there are no quantities.
            num_sampled: n; None: all clients, at most 50 of them.
            malicious_ratio: M = ceil(N * ratio) lie; 0.1 where neither this nor `num_malicious` is given.
            num_malicious: M itself.
            rounds: T.
            known: where quantities come from.
        """
        checks.at_most_one(malicious_ratio=malicious_ratio, num_malicious=num_malicious)
        if quantities is None:
            if num_clients is None:
                raise ValueError("nothing is known of the federation; give quantities, or num_clients")
            count = checks.whole("num_clients", num_clients, FEWEST, MOST_CLIENTS)
            held = np.full(count, float(SAMPLES_EACH))
            known = known or "no quantities were given: all clients are taken to hold the same number of samples"
        else:
            held = _checked(quantities)
            if num_clients is not None and num_clients != len(held):
                raise ValueError(
                    f"num_clients={num_clients}, but there are quantities of {len(held)} clients; leave one of them out"
                )
        total = len(held)
        sampled = min(total, USUAL_SAMPLED) if num_sampled is None else num_sampled
        checks.whole("num_sampled", sampled, FEWEST)
        if sampled > total:
            raise ValueError(f"num_sampled={sampled}, but the federation has {total} clients; give at most {total}")
        if num_malicious is None:
            ratio = USUAL_RATIO if malicious_ratio is None else checks.ratio(malicious_ratio)
            liars = math.ceil(total * exact(ratio))
            half = f"malicious_ratio={ratio:g} of {total} clients is {liars} of them"
        else:
            liars = checks.whole("num_malicious", num_malicious)
            ratio = _share(liars, total)
            half = f"num_malicious={liars} of {total} clients"
        if 2 * liars >= total and liars:
            raise ValueError(
                f"{half}; give less than half of the clients: no rule can stand against half of them or more"
            )
        return cls(
            quantities=held,
            num_sampled=sampled,
            num_malicious=liars,
            malicious_ratio=ratio,
            rounds=checks.whole("rounds", rounds, 1, MOST_ROUNDS),
            known=known or "quantities as given",
        )

    @property
    def num_clients(self) -> int:
        """N."""
        return len(self.quantities)

    @property
    def everybody(self) -> bool:
        """Whether all clients take part in every round."""
        return self.num_sampled == self.num_clients

    def told(self, rule: Rule) -> Rule:
        """Return the rule as a server of this federation would set it up."""
        # N goes with a ratio that comes to M of it; else the rule takes the ratio alone, which allows for one client.
        counted = malicious_total(self.num_clients, self.malicious_ratio) == self.num_malicious
        return rule.for_federation(
            num_clients=self.num_clients if counted else None, malicious_ratio=self.malicious_ratio
        )


def _share(liars: int, total: int) -> float:
    """Return M/N as a decimal, never above it: ceil(n M/N) must not be one more than it is."""
    share = liars / total
    return share if exact(share) * total == liars else math.floor(Fraction(liars, total) * _RATIO_STEPS) / _RATIO_STEPS


def _checked(quantities: Any) -> Floats:
    held = np.asarray(quantities, dtype=np.float64)
    if held.ndim != 1:
        raise ValueError(f"quantities have shape {held.shape}; give one number for each client")
    if len(held) < FEWEST:
        raise ValueError(
            f"quantities of {len(held)} client{'' if len(held) == 1 else 's'}; give at least {FEWEST}: with fewer "
            "there is no majority, and nobody can tell who lies"
        )
    if len(held) > MOST_CLIENTS:
        raise ValueError(
            f"quantities of {len(held):,} clients; give at most {MOST_CLIENTS:,}, a sample of them for instance"
        )
    wrong = np.flatnonzero(~((held >= 1) & (held <= MOST_SAMPLES)))
    if len(wrong):
        raise ValueError(
            f"quantities have {held[wrong[0]]:g} for client {wrong[0] + 1}; give a number from 1 to {MOST_SAMPLES:g}"
        )
    return held
