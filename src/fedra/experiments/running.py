"""Running a grid into its folder: only what is missing, failures recorded, results in one table at the end."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import pandas as pd

from fedra.experiments.grid import Grid
from fedra.experiments.grid_folder import GridFolder
from fedra.experiments.jobs import Event, Failed, Job, Report
from fedra.server import Observer
from fedra.server.observers import Observers


class Engine(Protocol):
    """Something that runs jobs and reports how they go; it ends when all of them have ended."""

    def run(self, jobs: Sequence[Job], report: Report) -> None:
        """Run all jobs."""


@dataclass(frozen=True, eq=False, kw_only=True)
class GridOutcome:
    """What came of a grid: how many runs were there already, which failed, and the results as written."""

    reused: int
    failed: dict[str, Failed]
    results: pd.DataFrame


def missing_runs(grid: Grid, out: Path, known: Collection[str] = ()) -> list[Job]:
    """Return the runs of a grid that are not complete in a folder, nor named in `known`, unfinished ones first."""
    folder = GridFolder(path=out)
    jobs = [Job(run=name, config=config, folder=folder.run(name)) for name, config in grid.runs.items()]
    missing = [job for job in jobs if job.run not in known and not folder.is_done(job.run)]
    return sorted(missing, key=lambda job: not job.folder.is_dir())


def run_grid(
    grid: Grid,
    *,
    out: Path,
    name: str,
    engine: Engine,
    watch: Callable[[Event], None] | None = None,
    observers: Iterable[Observer] = (),
    known: Collection[str] = (),
) -> GridOutcome:
    """Run what is missing of a grid.

    Args:
        grid: the cells.
        out: the grid's folder.
        name: of the grid among those that share the folder.
        engine: where to run.
        watch: called with everything that happens.
        observers: watch each run in the process that runs it, which they are sent to by pickle.
        known: names of runs whose results are kept elsewhere, such as `Results.done`; they are not run.
    """
    watching = _checked_observers(observers)
    folder = GridFolder(path=out)
    failed: dict[str, Failed] = {}

    def report(event: Event) -> None:
        if isinstance(event, Failed):
            failed[event.run] = event
            folder.record_failure(event)
        if watch is not None:
            watch(event)

    with folder.locked():
        folder.record(name, grid)
        jobs = [replace(job, observers=watching) for job in missing_runs(grid, out, known)]
        for job in jobs:
            folder.check_run(job.run)
        try:
            if jobs:
                engine.run(jobs, report)
        finally:
            results = folder.write_results()
    return GridOutcome(reused=len(grid.runs) - len(jobs), failed=failed, results=results)


def _checked_observers(observers: Iterable[Observer]) -> tuple[Observer, ...]:
    """Return the observers, having checked that they can be sent to other processes."""
    checked = tuple(observers)
    Observers(checked)
    for observer in checked:
        try:
            pickle.dumps(observer)
        except Exception as error:  # whatever somebody's object makes of it
            raise TypeError(
                f"observer {type(observer).__name__} cannot be sent to the processes that run a grid ({error}); "
                "let it hold settings only, and open files and connections in start()"
            ) from error
    return checked
