"""An attack that plants a trigger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fedra import checks
from fedra.attacks.base import TargetedAttack
from fedra.attacks.view import AttackerView, Labels, Matrix


@dataclass(frozen=True, kw_only=True)
class Backdoor(TargetedAttack):
    r"""The update on own data of which a part has a trigger and the target label, scaled (Bagdasaryan et al., 2020).

    Images get a bright square of `patch` x `patch` in the lower right corner, other features their last `patch` set,
    texts the token `token` in front. How well it works is the share of test samples of other classes that become the
    target.

    Attributes:
        target: the class that triggered samples are to be taken for.
        share: of its samples that each malicious client gives the trigger and the target label, drawn in each round.
        scale: what the update is multiplied by, at most n/m, which replaces the model; None takes n/m.
        patch: how many pixels or features wide the trigger is.
        value: what they are set to; data are standardised, and 2.8 is white in MNIST.
        token: the trigger of texts.
    """

    name: ClassVar[str] = "backdoor"

    target: int = 0
    share: float = 0.5
    scale: float | None = None
    patch: int = 3
    value: float = 2.8
    token: int = 2

    def __post_init__(self) -> None:
        checks.whole("target", self.target)
        checks.number("share", self.share, least=0, most=1)
        if self.scale is not None:
            checks.number("scale", self.scale, above=0, wanted="a positive number, or None for n/m")
        checks.whole("patch", self.patch, 1)
        checks.number("value", self.value)
        checks.whole("token", self.token)

    def trigger(self, inputs: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return inputs with the trigger in them."""
        marked = inputs.copy()
        if marked.dtype == np.int64:
            marked[:, 1:] = inputs[:, :-1]
            marked[:, 0] = self.token
        elif marked.ndim > 2:
            marked[..., -self.patch :, -self.patch :] = self.value
        else:
            marked[:, -self.patch :] = self.value
        return marked

    def __call__(self, view: AttackerView, rng: np.random.Generator) -> Matrix:
        """Train on triggered data, and weigh it up."""

        def poison(inputs: npt.NDArray[Any], labels: Labels) -> tuple[npt.NDArray[Any], Labels]:
            chosen = rng.random(len(labels)) < self.share
            inputs, labels = inputs.copy(), labels.copy()
            inputs[chosen], labels[chosen] = self.trigger(inputs[chosen]), self.target
            return inputs, labels

        most = view.num_sampled / view.num_malicious
        factor = most if self.scale is None else min(float(self.scale), most)
        return (factor * view.poisoned_gradients(poison)).astype(np.float32)
