"""Attacks that go as far as the honest clients themselves lie apart."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np

from fedra import checks
from fedra.attacks.base import UpdateAttack
from fedra.attacks.opposing import StatisticsOf
from fedra.attacks.view import AttackerView, Matrix, Reading
from fedra.cohort import Floats
from fedra.redteam import Honest

Direction = Literal["deviation", "sign", "mean"]


@dataclass(frozen=True, kw_only=True)
class _Hiding(UpdateAttack):
    reads: ClassVar[tuple[Reading, ...]] = ("observed",)

    direction: Direction = "deviation"
    knowledge: StatisticsOf = "own"

    def __post_init__(self) -> None:
        checks.choice("direction", self.direction, get_args(Direction))
        checks.choice("knowledge", self.knowledge, get_args(StatisticsOf))

    def __call__(self, view: AttackerView, rng: np.random.Generator) -> Matrix:
        """Go as far as the constraint allows."""
        honest = Honest(view.observed)
        towards = _towards(honest, self.direction)
        return (honest.mean + self._length(honest, towards) * towards).astype(np.float32)

    @abstractmethod
    def _length(self, honest: Honest, towards: Floats) -> float: ...


def _towards(honest: Honest, direction: Direction) -> Floats:
    if direction == "deviation":
        return -honest.deviation
    if direction == "sign":
        return -np.sign(honest.mean)
    norm = float(np.linalg.norm(honest.mean))
    return -honest.mean / norm if norm > 0 else np.zeros_like(honest.mean)


@dataclass(frozen=True, kw_only=True)
class MinMax(_Hiding):
    r"""Nobody farther than honest clients are from one another: :math:`\mu + \gamma\,p`, with the largest such length.

    :math:`\max_i \|x - g^i\| \le \max_{ij} \|g^i - g^j\|` over the clients that the attacker sees (Shejwalkar and
    Houmansadr, 2021). `direction` is p: "deviation" :math:`-\sigma`, "sign" :math:`-\mathrm{sign}(\mu)`, "mean"
    :math:`-\mu/\|\mu\|`. With `knowledge` "all" these are the round's honest clients, else the attacker's own.
    """

    name: ClassVar[str] = "min-max"

    def _length(self, honest: Honest, towards: Floats) -> float:
        return honest.largest_within_maximum(towards)


@dataclass(frozen=True, kw_only=True)
class MinSum(_Hiding):
    r"""No larger sum of squared distances than an honest client's: :math:`\mu + \gamma\,p`, of the largest such length.

    :math:`\sum_i \|x - g^i\|^2 \le \max_i \sum_j \|g^i - g^j\|^2`, else as min-max.
    """

    name: ClassVar[str] = "min-sum"

    def _length(self, honest: Honest, towards: Floats) -> float:
        return honest.largest_within_sum(towards)
