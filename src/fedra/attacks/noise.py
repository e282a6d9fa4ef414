"""An attack by noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedra import checks
from fedra.attacks.base import UpdateAttack
from fedra.attacks.view import AttackerView, Matrix, Reading
from fedra.kernels import column_moments


@dataclass(frozen=True, kw_only=True)
class Gaussian(UpdateAttack):
    r"""The mean and noise, :math:`\mu + N(0, s^2)` in each coordinate, drawn for each malicious client.

    `deviation` is s.
    """

    name: ClassVar[str] = "gaussian"
    reads: ClassVar[tuple[Reading, ...]] = ("observed",)

    deviation: float = 1.0

    def __post_init__(self) -> None:
        checks.number("deviation", self.deviation, least=0)

    def __call__(self, view: AttackerView, rng: np.random.Generator) -> Matrix:
        """Draw the noise."""
        mean, _ = column_moments(view.observed, threads=1)
        return (mean + self.deviation * rng.standard_normal((view.num_malicious, len(mean)))).astype(np.float32)
