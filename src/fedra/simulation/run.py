"""The round loop around a simulation: progress, checkpoints, resuming, the result."""

from __future__ import annotations

import hashlib
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from fedra import __version__
from fedra.data import Dataset
from fedra.simulation.config import SimulationConfig
from fedra.simulation.folder import RunFolder
from fedra.simulation.records import client_frame, round_frame, summary
from fedra.simulation.rounds import RoundOutcome, ServerState, Simulation

Progress = Callable[[RoundOutcome], None]


@dataclass(frozen=True, eq=False, kw_only=True)
class SimulationResult:
    """A finished run: its figures, and its records as data frames."""

    summary: dict[str, Any]
    rounds: pd.DataFrame
    clients: pd.DataFrame

    @property
    def final_accuracy(self) -> float:
        """Test accuracy after the last round, in percent."""
        return float(self.summary["final_accuracy"])

    @property
    def best_accuracy(self) -> float:
        """The best test accuracy that was measured, in percent."""
        return float(self.summary["best_accuracy"])


def simulate(
    config: SimulationConfig,
    *,
    out: Path | str | None = None,
    progress: Progress | None = None,
    dataset: Dataset | None = None,
) -> SimulationResult:
    """Run a configuration, into a new folder `out` where one is given.

    Args:
        config: what to run.
        out: folder for configuration, records, checkpoint and result.
        progress: called after each round.
        dataset: the data, where it is in memory already; else it is loaded as the configuration says.
    """
    simulation = Simulation(config, dataset)
    if out is None:
        return _run(simulation, None, simulation.initial_state(), 0.0, progress)
    folder = RunFolder.create(Path(out), config)
    with folder.locked():
        return _run(simulation, folder, simulation.initial_state(), 0.0, progress)


def resume(
    path: Path | str, *, progress: Progress | None = None, dataset: Dataset | None = None, trust: bool = False
) -> SimulationResult:
    """Go on with the run in a folder; it ends with the same bits as if it had never stopped.

    Args:
        path: the folder.
        progress: called after each round.
        dataset: the data, where the run was given them.
        trust: whether code that the folder names, such as an own rule, may be imported; else that is an error.
    """
    folder, config = RunFolder.existing(Path(path), trust=trust)
    complete = folder.complete(config)
    if complete is not None:
        result, frames = complete
        return SimulationResult(summary=result, rounds=frames["rounds"], clients=frames["clients"])
    simulation = Simulation(config, dataset)
    with folder.locked():
        initial = simulation.initial_state()
        state, seconds = folder.load(initial, config.rounds) or (initial, 0.0)
        return _run(simulation, folder, state, seconds, progress)


def _run(
    simulation: Simulation, folder: RunFolder | None, state: ServerState, before: float, progress: Progress | None
) -> SimulationResult:
    config = simulation.config
    threads = torch.get_num_threads()
    started = time.perf_counter()
    outcomes: list[RoundOutcome] = []
    parts: dict[str, list[pd.DataFrame]] = {"rounds": [], "clients": []}

    def save() -> None:
        """Turn outcomes, each of which holds a whole update, into records; into the folder where there is one."""
        # An interrupt may fall between a round's outcome and the state after it: the state says what is done.
        done = [outcome for outcome in outcomes if outcome.round < state.round]
        if not done:
            return
        frames = {"rounds": round_frame(done), "clients": client_frame(done)}
        if folder is not None:
            folder.save(state, before + time.perf_counter() - started, frames)
        else:
            for name, frame in frames.items():
                parts[name].append(frame)
        outcomes.clear()

    torch.set_num_threads(config.threads)
    try:
        try:
            while state.round < config.rounds:
                after, outcome = simulation.step(state)
                outcomes.append(outcome)
                state = after
                if progress is not None:
                    progress(outcome)
                if state.round % config.checkpoint_every == 0:
                    save()
        finally:
            save()
        seconds = before + time.perf_counter() - started
        if folder is None:
            rounds, clients = (pd.concat(parts[name], ignore_index=True) for name in ("rounds", "clients"))
        else:
            frames = folder.frames()
            rounds, clients = frames["rounds"], frames["clients"]
            if len(rounds) != config.rounds:
                raise ValueError(f"{folder.path} has records of {len(rounds)} rounds, {config.rounds} were run")
        result = _result(config, simulation, state, rounds, seconds)
        if folder is not None:
            folder.finish(result)
    finally:
        torch.set_num_threads(threads)
    return SimulationResult(summary=result, rounds=rounds, clients=clients)


def _result(
    config: SimulationConfig, simulation: Simulation, state: ServerState, rounds: pd.DataFrame, seconds: float
) -> dict[str, Any]:
    return {
        **summary(rounds),
        "rounds": config.rounds,
        "seconds": round(seconds, 3),
        "rounds_per_second": round(config.rounds / seconds, 3) if seconds > 0 else None,
        "seed": config.seed,
        "num_clients": simulation.federation.num_clients,
        "num_malicious_clients": int(simulation.federation.malicious.sum()),
        "num_parameters": len(state.weights),
        "weights_sha256": hashlib.sha256(state.weights.tobytes()).hexdigest(),
        "config": {key: value for key, value in config.to_dict().items() if value is not None},
        "versions": {
            "fedra": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "numba", "torch")},
        },
    }
