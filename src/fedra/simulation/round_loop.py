"""The loop around the rounds of a run: observers, checkpoints, resuming, the result."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from fedra.data import Dataset
from fedra.server.observers import Observer, Observers, RunInfo
from fedra.simulation.checkpoint import check_rule_state
from fedra.simulation.config import SimulationConfig
from fedra.simulation.round_step import RoundOutcome, ServerState, Simulation
from fedra.simulation.run_folder import RunFolder
from fedra.simulation.run_records import client_frame, round_frame, round_record
from fedra.simulation.run_result import SimulationResult, make_result


def simulate(
    config: SimulationConfig,
    *,
    out: Path | str | None = None,
    observers: Iterable[Observer] = (),
    dataset: Dataset | None = None,
    run: str | None = None,
) -> SimulationResult:
    """Run a configuration, into a new folder `out` where one is given.

    Args:
        config: what to run.
        out: folder for configuration, records, checkpoint and result.
        observers: who watches the start, each round (after its checkpoint) and the end; see `fedra.server.Observer`.
        dataset: the data, where it is in memory already; else it is loaded as the configuration says.
        run: what observers know the run by; None: the folder's name, or the settings in short.
    """
    watching = Observers(observers)
    simulation = Simulation(config, dataset)
    initial = simulation.initial_state()
    check_rule_state(initial.rule)
    check_rule_state(initial.attack, "attack")
    if out is None:
        return _run(simulation, None, initial, 0.0, watching, run)
    folder = RunFolder.create(Path(out), config, chosen=simulation.chosen)
    with folder.locked():
        return _run(simulation, folder, initial, 0.0, watching, run)


def resume(
    path: Path | str,
    *,
    observers: Iterable[Observer] = (),
    dataset: Dataset | None = None,
    trust: bool = False,
    run: str | None = None,
    rounds: int | None = None,
) -> SimulationResult:
    """Go on with the run in a folder; it ends with the same bits as if it had never stopped.

    A run that is complete is read, not run again, and no observer is called.

    Args:
        path: the folder.
        observers: as in `simulate`.
        dataset: the data, where the run was given them.
        trust: whether code that the folder names, such as an own rule, may be imported; else that is an error.
        run: as in `simulate`.
        rounds: how many the run is to have in all, where that is more than it was begun with. The model has the bits
            of a run that was begun with so many; accuracy was also measured where the run was to end before.
    """
    watching = Observers(observers)
    folder, config = RunFolder.existing(Path(path), trust=trust)
    if rounds is not None:
        config = folder.extend(config, rounds)
    complete = folder.complete(config)
    if complete is not None:
        result, frames = complete
        return SimulationResult(summary=result, rounds=frames["rounds"], clients=frames["clients"])
    simulation = Simulation(config, dataset)
    with folder.locked():
        initial = simulation.initial_state()
        state, seconds = folder.load(initial, config.rounds, simulation.rule, simulation.attack) or (initial, 0.0)
        return _run(simulation, folder, state, seconds, watching, run)


def _run(
    simulation: Simulation,
    folder: RunFolder | None,
    state: ServerState,
    seconds_before: float,
    observers: Observers,
    name: str | None,
) -> SimulationResult:
    """Run what is left of a run, and let observers know of its end however it ends."""
    info = _info(simulation, folder, state, name)
    threads = torch.get_num_threads()
    torch.set_num_threads(simulation.config.threads)
    figures: dict[str, Any] = {}
    try:
        observers.start(info)
        result = _rounds(simulation, folder, state, seconds_before, observers, info.run)
        figures = result.summary
    finally:
        torch.set_num_threads(threads)
        observers.end(info, figures)
    return result


def _rounds(
    simulation: Simulation,
    folder: RunFolder | None,
    state: ServerState,
    seconds_before: float,
    observers: Observers,
    run: str,
) -> SimulationResult:
    config = simulation.config
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
            folder.save(state, seconds_before + time.perf_counter() - started, frames)
        else:
            for name, frame in frames.items():
                parts[name].append(frame)
        outcomes.clear()

    try:
        while state.round < config.rounds:
            after, outcome = simulation.step(state)
            decided = time.time()
            outcomes.append(outcome)
            state = after
            if state.round % config.checkpoint_every == 0:
                save()
            if len(observers):
                observers.round(round_record(outcome, run=run, time=decided))
    finally:
        save()
    seconds = seconds_before + time.perf_counter() - started
    if folder is None:
        rounds, clients = (pd.concat(parts[name], ignore_index=True) for name in ("rounds", "clients"))
    else:
        frames = folder.frames()
        rounds, clients = frames["rounds"], frames["clients"]
        if len(rounds) != config.rounds:
            raise ValueError(f"{folder.path} has records of {len(rounds)} rounds, {config.rounds} were run")
    result = make_result(simulation, state, rounds, seconds)
    if folder is not None:
        folder.finish(result)
    return SimulationResult(summary=result, rounds=rounds, clients=clients)


def _info(simulation: Simulation, folder: RunFolder | None, state: ServerState, name: str | None) -> RunInfo:
    config = simulation.config
    if name is None:
        name = config.short_name if folder is None else folder.path.resolve().name
    return RunInfo(
        run=name,
        platform="simulation",
        rule=str(simulation.rule),
        rounds=config.rounds,
        rounds_done=state.round,
        settings=config.to_dict(),
        folder=None if folder is None else str(folder.path),
    )
