"""Running a grid into its folder: only what is missing, failures recorded, results in one table at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pandas as pd

from fedra.experiments.grid import Grid
from fedra.experiments.grid_folder import GridFolder
from fedra.experiments.jobs import Event, Failed, Job, Report


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


def missing_runs(grid: Grid, out: Path) -> list[Job]:
    """Return the runs of a grid that are not complete in a folder, unfinished ones first."""
    folder = GridFolder(path=out)
    jobs = [Job(run=name, config=config, folder=folder.run(name)) for name, config in grid.runs.items()]
    missing = [job for job in jobs if not folder.is_done(job.run)]
    return sorted(missing, key=lambda job: not job.folder.is_dir())


def run_grid(
    grid: Grid, *, out: Path, name: str, engine: Engine, watch: Callable[[Event], None] | None = None
) -> GridOutcome:
    """Run what is missing of a grid.

    Args:
        grid: the cells.
        out: the grid's folder.
        name: of the grid among those that share the folder.
        engine: where to run.
        watch: called with everything that happens.
    """
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
        jobs = missing_runs(grid, out)
        for job in jobs:
            folder.check_run(job.run)
        try:
            if jobs:
                engine.run(jobs, report)
        finally:
            results = folder.write_results()
    return GridOutcome(reused=len(grid.runs) - len(jobs), failed=failed, results=results)
