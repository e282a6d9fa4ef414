"""An attack that draws the eyes of an estimator away from the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from fedra import checks
from fedra.attacks.base import Sent, StatefulAttack, UpdateAttack
from fedra.attacks.updates import Optimize
from fedra.attacks.view import AttackerView, Knowledge, Matrix, Reading
from fedra.kernels import column_moments


@dataclass(frozen=True, kw_only=True)
class Decoys(UpdateAttack):
    r"""A few far away, so that those who really push look like everybody else.

    The first `count` of a round's malicious clients send :math:`\mu - f\,\sigma`, f drawn from 50 to 100, the others
    what another attack would: by default optimize with `lam`, :math:`\mu - \lambda\,\mathrm{sign}(\mu)\,\sigma`.

    Attributes:
        count: how many decoys.
        lam: :math:`\lambda`, where the others' attack is optimize and has no parameters of its own.
        attack: what the others send, a name of `ATTACKS`; one that remembers nothing.
        attack_params: its parameters.
        claim: what decoys claim; None: as the quantity attack decides.
    """

    name: ClassVar[str] = "decoys"
    reads: ClassVar[tuple[Reading, ...]] = ("pool",)

    count: int = 2
    lam: float = 1.0
    # `later`: values that leave the attack as it was before there were these options, and run names with it.
    attack: str = field(default="optimize", metadata={"later": "optimize"})
    attack_params: Mapping[str, Any] = field(default_factory=dict, metadata={"later": {}})
    claim: float | None = field(default=None, metadata={"later": None})

    def __post_init__(self) -> None:
        checks.whole("count", self.count)
        checks.number("lam", self.lam)
        from fedra.attacks import ATTACKS  # Decoys are one of them.

        # Not module:name: parameters come from files that nobody vouches for, and naming code needs trust.
        checks.choice("attack", self.attack, ATTACKS)
        checks.table("attack_params", self.attack_params)
        if self.claim is not None:
            checks.number("claim", self.claim, least=1)
        if isinstance(self._others, StatefulAttack):
            raise ValueError(f"attack={self.attack!r} remembers, which decoys do not go with; give another attack")

    @cached_property
    def _others(self) -> UpdateAttack:
        from fedra.attacks import make_registered

        if self.attack == Optimize.name and not self.attack_params:
            return Optimize(lam=self.lam)
        return make_registered(self.attack, **self.attack_params)

    @property
    def knowledge(self) -> Knowledge:
        """As the others' attack has it."""
        return self._others.knowledge

    def __call__(self, view: AttackerView, rng: np.random.Generator) -> Matrix | Sent:
        """Send decoys first, then the others."""
        mean, deviation = column_moments(view.pool_gradients, threads=1)
        decoys = min(self.count, view.num_malicious)
        far = (mean - rng.uniform(50, 100, (decoys, 1)) * deviation).astype(np.float32)
        others = self._others(view, rng)
        given = others if isinstance(others, Sent) else Sent(updates=others)
        updates = np.array(np.broadcast_to(given.updates, (view.num_malicious, len(mean))), dtype=np.float32)
        updates[:decoys] = far
        if self.claim is None:
            return updates if given.claims is None else replace(given, updates=updates)
        claims = np.full(view.num_malicious, np.nan) if given.claims is None else np.array(given.claims)
        claims[:decoys] = self.claim
        return Sent(updates=updates, claims=claims)
