"""An attack by copying an honest client."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedra.attacks.base import UpdateAttack
from fedra.attacks.view import InformedView, Knowledge, Matrix
from fedra.redteam import Honest


@dataclass(frozen=True, kw_only=True)
class Mimic(UpdateAttack):
    """All send what one honest client sends: the one furthest from the mean along the top direction of variance.

    Nothing that is sent is unusual; one client's data count several times (Karimireddy et al., 2022).
    """

    name: ClassVar[str] = "mimic"

    @property
    def knowledge(self) -> Knowledge:
        """Whom to copy is chosen among the round's honest clients."""
        return "all"

    def __call__(self, view: InformedView, rng: np.random.Generator) -> Matrix:
        """Copy it."""
        copied: Matrix = view.observed[Honest(view.observed).most_deviant]
        return copied
