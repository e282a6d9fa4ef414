"""An attack that never changes its direction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedra import checks
from fedra.attacks.base import AttackState, StatefulAttack
from fedra.attacks.view import AttackerView, Matrix


@dataclass(frozen=True, kw_only=True)
class Consistent(StatefulAttack):
    r"""One random sign vector for the whole run, :math:`c` times as long as the last global step (Xie et al., 2024).

    The step is how far the model moved since the attacker last saw it, the last one that was not zero; before there is
    one, malicious clients send what honest ones would. Small pushes add up, since they never cancel.

    Attributes:
        c: how many times as long.
    """

    name: ClassVar[str] = "consistent"

    c: float = 8.0

    def __post_init__(self) -> None:
        checks.number("c", self.c, least=0)

    def init(self, dimension: int) -> AttackState:
        """Start with no signs drawn, no model seen and no step taken."""
        return {
            "signs": np.zeros(dimension, dtype=np.int8),
            "weights": np.zeros(dimension, dtype=np.float32),
            "step": np.zeros(()),
        }

    def __call__(self, view: AttackerView, rng: np.random.Generator, state: AttackState) -> tuple[Matrix, AttackState]:
        """Push the same way as ever."""
        signs, step = state["signs"], float(state["step"])
        if not signs.any():
            signs = rng.choice(np.array([-1, 1], dtype=np.int8), len(signs))
        else:
            moved = float(np.linalg.norm(view.weights.astype(np.float64) - state["weights"]))
            step = moved if moved > 0 and np.isfinite(moved) else step
        after = {"signs": signs, "weights": view.weights.copy(), "step": np.asarray(step)}
        if step == 0:
            return view.own_gradients, after
        return (signs * (self.c * step / np.sqrt(len(signs)))).astype(np.float32), after
