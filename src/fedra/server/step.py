"""From a judged round to the next model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fedra import checks
from fedra.optimizers import OptimizerState, ServerOptimizer, make_optimizer
from fedra.server.defence import Outcome
from fedra.server.faults import short
from fedra.server.form import ModelForm
from fedra.server.records import RoundRecord
from fedra.server.state import Arrays, SavedState


class ServerStep:
    """A server optimizer with the state it has reached; `owner` is the strategy whose optimizer it is."""

    def __init__(self, optimizer: ServerOptimizer | str, owner: str) -> None:
        self.optimizer = make_optimizer(optimizer) if isinstance(optimizer, str) else optimizer
        if isinstance(optimizer, type) or not callable(getattr(self.optimizer, "step", None)):
            wanted = "an optimizer such as fedra.optimizers.SGD(), or the name of one"
            raise TypeError(checks.wrong("server_optimizer", optimizer, wanted))
        self.state: OptimizerState | None = None
        self._owner = owner

    @property
    def writer(self) -> str:
        """What must be the same for a state to be resumed from."""
        return f"{self._owner} with {self.optimizer!r}"

    def begin(self) -> None:
        """Forget all steps: a run begins."""
        self.state = None

    def memory(self) -> tuple[Arrays, Mapping[str, Any]]:
        """Return the moments, and how many steps led to them."""
        return ({}, {}) if self.state is None else (self.state.moments, {"step": self.state.step})

    def recall(self, saved: SavedState) -> None:
        """Go on from a saved state; ValueError where it is none of this optimizer's."""
        if "step" not in saved.numbers:
            return
        size = sum(array.size for array in saved.arrays.values() if array.dtype.kind == "f")
        state = OptimizerState(step=saved.numbers["step"], moments=saved.memory)
        if type(state.step) is not int or state.step < 0:
            raise ValueError(f"step {short(state.step)} of the server optimizer")
        shapes = {name: moment.shape for name, moment in state.moments.items()}
        for name, moment in self.optimizer.init(size).moments.items():
            if shapes.get(name) != moment.shape:
                raise ValueError(f"the server optimizer's {short(name)} moment is not of this model")
        if not all(moment.dtype.kind == "f" and np.isfinite(moment).all() for moment in state.moments.values()):
            raise ValueError("the server optimizer's moments are not finite numbers")
        self.state = state

    def take(
        self, weights: npt.NDArray[Any], form: ModelForm, outcome: Outcome, *, of_updates: bool
    ) -> tuple[dict[str, npt.NDArray[Any]] | None, RoundRecord]:
        """Return the new trained arrays by name, or None and why not; the state moves only with the model.

        `of_updates`: the rule was given updates; else replies, whose aggregate is an update further than the weights.
        """
        aggregate = outcome.verdict.update
        if aggregate is None:
            return None, outcome.record
        state = self.state or self.optimizer.init(weights.size)
        with np.errstate(all="ignore"):
            # Optimizers descend along a gradient; an update points where the clients went.
            gradient = -aggregate if of_updates else weights - aggregate
            moved, state = self.optimizer.step(weights, gradient, state)
            trained = form.split(moved)
        if not all(np.isfinite(array).all() for array in trained.values()):
            return None, outcome.record.failed("the new model would hold values that are not finite")
        if not all(np.isfinite(moment).all() for moment in state.moments.values()):
            return None, outcome.record.failed("the server optimizer would remember values that are not finite")
        self.state = state
        return trained, outcome.record
