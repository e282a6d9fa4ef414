"""Attacks that send the opposite of what is honest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np

from fedra import checks
from fedra.attacks.base import UpdateAttack
from fedra.attacks.view import AttackerView, Matrix, Reading
from fedra.kernels import column_moments

StatisticsOf = Literal["own", "all"]


@dataclass(frozen=True, kw_only=True)
class SignFlip(UpdateAttack):
    """Each malicious client's own update with the opposite sign, :math:`-g^i` (Li et al., 2019)."""

    name: ClassVar[str] = "sign-flip"
    reads: ClassVar[tuple[Reading, ...]] = ("own",)

    def __call__(self, view: AttackerView, rng: np.random.Generator) -> Matrix:
        """Turn every update around."""
        return -view.own_gradients


@dataclass(frozen=True, kw_only=True)
class IPM(UpdateAttack):
    r"""Inner product manipulation: :math:`-\varepsilon\,\mu`, the same for all (Xie et al., 2020).

    `eps` of 0.5 hides and shortens the aggregate, 10 turns it around. With `knowledge` "all" the mean :math:`\mu` is of
    the round's honest clients, else of the attacker's own.
    """

    name: ClassVar[str] = "ipm"
    reads: ClassVar[tuple[Reading, ...]] = ("observed",)

    eps: float = 0.5
    knowledge: StatisticsOf = "own"

    def __post_init__(self) -> None:
        checks.number("eps", self.eps, least=0)
        checks.choice("knowledge", self.knowledge, get_args(StatisticsOf))

    def __call__(self, view: AttackerView, rng: np.random.Generator) -> Matrix:
        """Send the negative of the mean."""
        mean, _ = column_moments(view.observed, threads=1)
        return (-self.eps * mean).astype(np.float32)
