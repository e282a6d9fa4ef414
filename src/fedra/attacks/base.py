"""What every update attack is: what the attacker sees in, what its clients send out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fedra.attacks.view import Knowledge, Matrix, Reading
from fedra.cohort import Floats
from fedra.untrusted import clipped

# What an attack remembers between rounds: named arrays of numbers.
AttackState = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, eq=False, kw_only=True)
class Sent:
    """What the m malicious clients of a round send.

    Attributes:
        updates: (m, d), or one (d,) for all of them.
        claims: (m,) claimed quantities, NaN where the quantity attack decides; None: it decides on all.
    """

    updates: Matrix
    claims: Floats | None = None


class UpdateAttack(ABC):
    """An update attack: a frozen dataclass with keyword-only parameters, called with what the attacker sees."""

    name: ClassVar[str]
    reads: ClassVar[tuple[Reading, ...]] = ()
    """Which of the view's honest gradients it reads in every round: they may be computed early, beside the others.

    The view shows no more for it, and what is not named here is computed when it is read.
    """

    @property
    def knowledge(self) -> Knowledge:
        """What this attack must see: a view of exactly that type is what it is given."""
        return "own"

    @abstractmethod
    def __call__(self, view: Any, rng: np.random.Generator, *args: Any) -> Any:
        """Return the update of each of the view's m malicious clients, (m, d), or one (d,) for all of them, or `Sent`.

        An attack has ``(view, rng)``, one that remembers the form of `StatefulAttack`.
        """


class StatefulAttack(UpdateAttack):
    """An attack that remembers: what it needs of earlier rounds comes in with the view, and goes out with the updates.

    A state is a dictionary of named NumPy arrays of numbers, never changed in place; run folders keep it bit for bit.
    """

    @abstractmethod
    def init(self, dimension: int) -> AttackState:
        """Return the state before the first round, for updates of this length."""

    @abstractmethod
    def __call__(
        self, view: Any, rng: np.random.Generator, state: AttackState, *args: Any
    ) -> tuple[Matrix | Sent, AttackState]:
        """Return what is sent as `UpdateAttack` does, and the state after it."""

    def restore(self, state: AttackState, dimension: int) -> AttackState:
        """Return a state if it can be this attack's, else raise ValueError: a file may hold anything."""
        expected = self.init(dimension)
        if state.keys() != expected.keys():
            found = clipped(", ".join(map(str, state))) or "nothing"
            raise ValueError(f"it holds {found}, {self.name} has {', '.join(expected)}")
        for name, like in expected.items():
            array = state[name]
            if array.dtype != like.dtype or array.shape != like.shape:
                raise ValueError(
                    f"{name} is {array.dtype} of shape {array.shape}, {self.name} has {like.dtype} of {like.shape}"
                )
        return {name: state[name] for name in expected}


class TargetedAttack(UpdateAttack):
    """An attack that wants triggered inputs to be taken for one class, and whose success can therefore be measured."""

    target: int

    @abstractmethod
    def trigger(self, inputs: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return inputs with the trigger in them, as new arrays."""


def initial_attack_state(attack: Any, dimension: int) -> AttackState | None:
    """Return the state of an attack before the first round; None for one that remembers nothing."""
    return attack.init(dimension) if isinstance(attack, StatefulAttack) else None
