"""The paper's attacks: what malicious clients send, from what they know of their own data."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import ClassVar, Literal, get_args

import numpy as np

from fedra import checks
from fedra.attacks.base import UpdateAttack
from fedra.attacks.view import AttackerView, Labels, Matrix, Reading
from fedra.kernels import column_moments


@dataclass(frozen=True, kw_only=True)
class NoAttack(UpdateAttack):
    """The honest update; together with a quantity attack, a lie about the quantity alone."""

    name: ClassVar[str] = "none"
    reads: ClassVar[tuple[Reading, ...]] = ("own",)

    def __call__(self, view: AttackerView, rng: np.random.Generator) -> Matrix:
        """Send what an honest client would."""
        return view.own_gradients


LabelMapping = Literal["reverse", "next", "random"]


@dataclass(frozen=True, kw_only=True)
class LabelFlip(UpdateAttack):
    r"""Each malicious client's gradient on its own data with other labels, :math:`y \to C-1-y` (Fang et al., 2020).

    `mapping` "next" is :math:`y \to (y+1) \bmod C`, "random" any other label, drawn anew in each round.
    """

    name: ClassVar[str] = "label-flip"

    mapping: LabelMapping = "reverse"

    def __post_init__(self) -> None:
        checks.choice("mapping", self.mapping, get_args(LabelMapping))

    def __call__(self, view: AttackerView, rng: np.random.Generator) -> Matrix:
        """Train on wrong labels."""
        classes = view.num_classes

        def relabel(labels: Labels) -> Labels:
            if self.mapping == "reverse":
                return classes - 1 - labels
            if self.mapping == "next":
                return (labels + 1) % classes
            return (labels + rng.integers(1, classes, size=len(labels))) % classes

        return view.relabelled_gradients(relabel)


@dataclass(frozen=True, kw_only=True)
class LIE(UpdateAttack):
    r""" "A little is enough": :math:`\mu - z\,\sigma` in each coordinate, the same for all (Baruch et al., 2019).

    `z` is a number, or "max" for the largest that the textbook allows, :math:`\Phi^{-1}((n-m-s)/(n-m))` with
    :math:`s = \lfloor n/2+1 \rfloor - m`, not below 0.
    """

    name: ClassVar[str] = "lie"
    reads: ClassVar[tuple[Reading, ...]] = ("pool",)

    z: float | Literal["max"] = 1.5

    def __post_init__(self) -> None:
        if not (isinstance(self.z, str) and self.z == "max"):
            checks.number("z", self.z, wanted="a number, or 'max'")

    def __call__(self, view: AttackerView, rng: np.random.Generator) -> Matrix:
        """Hide within the spread of honest updates."""
        mean, deviation = column_moments(view.pool_gradients, threads=1)
        z = largest_unnoticed(view.num_sampled, view.num_malicious) if self.z == "max" else float(self.z)
        return (mean - z * deviation).astype(np.float32)


def largest_unnoticed(num_sampled: int, num_malicious: int) -> float:
    r"""Return :math:`z = \Phi^{-1}((n-m-s)/(n-m))`, :math:`s = \lfloor n/2+1 \rfloor - m`, not below 0."""
    benign = num_sampled - num_malicious
    supporters = max(1, num_sampled // 2 + 1 - num_malicious)
    if benign <= supporters:
        return 0.0
    return max(0.0, NormalDist().inv_cdf((benign - supporters) / benign))


@dataclass(frozen=True, kw_only=True)
class Optimize(UpdateAttack):
    r"""Against the honest direction: :math:`\mu - \lambda\,\mathrm{sign}(\mu)\,\sigma`, the same for all.

    `lam` is :math:`\lambda` (Shejwalkar and Houmansadr, 2021).
    """

    name: ClassVar[str] = "optimize"
    reads: ClassVar[tuple[Reading, ...]] = ("pool",)

    lam: float = 3.0

    def __post_init__(self) -> None:
        checks.number("lam", self.lam)

    def __call__(self, view: AttackerView, rng: np.random.Generator) -> Matrix:
        """Push every coordinate back past zero."""
        mean, deviation = column_moments(view.pool_gradients, threads=1)
        return (mean - self.lam * np.sign(mean) * deviation).astype(np.float32)
