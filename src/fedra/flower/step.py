"""From a judged round to the next model."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fedra.audit import RoundReport
from fedra.flower.defence import Outcome
from fedra.flower.model import ModelForm
from fedra.optimizers import OptimizerState, ServerOptimizer, make_optimizer


class ServerStep:
    """A server optimizer with the state it has reached."""

    def __init__(self, optimizer: ServerOptimizer | str) -> None:
        self.optimizer = make_optimizer(optimizer) if isinstance(optimizer, str) else optimizer
        self.state: OptimizerState | None = None

    def take(
        self, weights: npt.NDArray[Any], form: ModelForm, outcome: Outcome, *, of_updates: bool
    ) -> tuple[dict[str, npt.NDArray[Any]] | None, RoundReport]:
        """Return the new trained arrays by name, or None and why not; the state moves only with the model.

        `of_updates`: the rule was given updates; else replies, whose aggregate is an update further than the weights.
        """
        aggregate = outcome.verdict.update
        if aggregate is None:
            return None, outcome.report
        state = self.state or self.optimizer.init(weights.size)
        with np.errstate(all="ignore"):
            # Optimizers descend along a gradient; an update points where the clients went.
            gradient = -aggregate if of_updates else weights - aggregate
            moved, state = self.optimizer.step(weights, gradient, state)
            trained = form.split(moved)
        if not all(np.isfinite(array).all() for array in trained.values()):
            return None, outcome.failed("the new model would hold values that are not finite")
        if not all(np.isfinite(moment).all() for moment in state.moments.values()):
            return None, outcome.failed("the server optimizer would remember values that are not finite")
        self.state = state
        return trained, outcome.report
