"""A strategy's start that resumes from a saved state."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result, Strategy

from fedra.flower.defence import LOGGER
from fedra.flower.faults import short
from fedra.flower.state import ServerState, check_writable, load_state, save_state

EvaluateFn = Callable[[int, ArrayRecord], MetricRecord | None]


class Resumable(Strategy):
    """A strategy that saves its state after each round where it was given a path, and resumes from it.

    Flower counts rounds from 1 in every start; `_done` rounds were done before, and are added to its count.
    """

    _done: int = 0
    _state_path: Path | None = None

    def _keep_state_at(self, path: str | os.PathLike[str] | None) -> None:
        self._state_path = None if path is None else Path(path)

    @abstractmethod
    def _writer(self) -> str:
        """Return what must be the same for a state to be resumed from."""

    @abstractmethod
    def _memory(self) -> tuple[Mapping[str, npt.NDArray[Any]], Mapping[str, Any]]:
        """Return the arrays and the plain values to remember besides the model."""

    @abstractmethod
    def _recall(self, state: ServerState) -> None:
        """Take back what `_memory` returned."""

    @abstractmethod
    def _prepare(self, arrays: ArrayRecord) -> None:
        """Get ready for a run that begins with these arrays."""

    def _save(self, server_round: int, arrays: ArrayRecord) -> None:
        if self._state_path is None:
            return
        memory, numbers = self._memory()
        model = {name: array.numpy() for name, array in arrays.items()}
        state = ServerState(round=server_round, writer=self._writer(), arrays=model, memory=memory, numbers=numbers)
        save_state(self._state_path, state)

    def _take_back(self, state: ServerState) -> None:
        try:
            self._recall(state)
        except Exception as error:  # the file may hold anything under any name
            raise ValueError(
                f"{self._state_path} holds what this strategy cannot take back ({short(error, 200)}); use the settings "
                "that it was saved with, or move it away to start anew"
            ) from error

    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int = 3,
        timeout: float = 3600,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: EvaluateFn | None = None,
    ) -> Result:
        """Run the strategy as Flower does, from the saved state where there is one; `num_rounds` counts all rounds."""
        self._done = 0
        self._prepare(initial_arrays)
        state = None if self._state_path is None else load_state(self._state_path, self._writer())
        if state is not None:
            initial_arrays = _resumed_arrays(state, initial_arrays, self._state_path)
            self._take_back(state)
            self._done = state.round
            LOGGER.info("fedra: resuming after round %d from %s", state.round, self._state_path)
        if self._state_path is not None:
            check_writable(self._state_path)
        done = self._done
        result = super().start(
            grid,
            initial_arrays,
            max(0, num_rounds - done),
            timeout,
            train_config,
            evaluate_config,
            None if evaluate_fn is None else lambda number, arrays: evaluate_fn(number + done, arrays),
        )
        if not len(result.arrays):
            result.arrays = initial_arrays
        for metrics in (
            result.train_metrics_clientapp,
            result.evaluate_metrics_clientapp,
            result.evaluate_metrics_serverapp,
        ):
            renumbered = {number + done: record for number, record in metrics.items()}
            metrics.clear()
            metrics.update(renumbered)
        return result


def _resumed_arrays(state: ServerState, initial: ArrayRecord, path: Path | None) -> ArrayRecord:
    first = {name: array.numpy() for name, array in initial.items()}
    alike = state.arrays.keys() == first.keys() and all(
        array.shape == first[name].shape and _follows(array.dtype, first[name].dtype)
        for name, array in state.arrays.items()
    )
    if not alike:
        raise ValueError(f"{path} holds another model than the one to start from; move it away to start anew")
    return ArrayRecord({name: Array(array) for name, array in state.arrays.items()})


def _follows(saved: np.dtype[Any], first: np.dtype[Any]) -> bool:
    """Tell whether rounds can make one type of the other: strategies return wider floats, and floats for integers."""
    return saved == first or saved.kind == "f"
