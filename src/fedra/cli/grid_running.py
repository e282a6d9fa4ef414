"""Running a grid for someone who watches: what is to do, how it goes, what came of it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from rich.table import Table

from fedra.cli.console import console, errors, show, terminated_as_interrupted
from fedra.cli.grid_options import Engines
from fedra.cli.grid_progress import duration, shown
from fedra.experiments import (
    Engine,
    Grid,
    GridOutcome,
    Job,
    LocalEngine,
    RayEngine,
    Tally,
    missing_runs,
    run_grid,
    usable_cores,
)
from fedra.experiments.grid_folder import RESULTS


@dataclass(frozen=True, kw_only=True)
class Machinery:
    """Where runs go, and how many at a time."""

    kind: Engines
    workers: int | None
    ray_address: str | None

    def __post_init__(self) -> None:
        if self.ray_address is not None and self.kind is not Engines.RAY:
            raise ValueError(f"--ray-address {self.ray_address} is for --engine ray; this is --engine {self.kind}")

    def engine(self) -> Engine:
        """Return the engine."""
        if self.kind is Engines.RAY:
            return RayEngine(address=self.ray_address, workers=self.workers)
        return LocalEngine(workers=self.workers)

    @property
    def at_once(self) -> int | None:
        """How many runs there are at a time; None where only the cluster knows."""
        return self.workers or (usable_cores() if self.kind is Engines.LOCAL else None)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A grid, its folder and its name there, and what of it is still to run."""

    cells: Grid
    folder: Path
    name: str
    missing: tuple[Job, ...]

    @classmethod
    def of(cls, cells: Grid, folder: Path, name: str) -> Plan:
        """Look into the folder for what is there."""
        return cls(cells=cells, folder=folder, name=name, missing=tuple(missing_runs(cells, folder)))

    @property
    def counts(self) -> dict[str, int]:
        """How many cells, distinct runs, and runs to do."""
        return {"cells": len(self.cells.cells), "distinct": len(self.cells.runs), "missing": len(self.missing)}

    def say_counts(self) -> None:
        """Tell how many cells are how many runs."""
        cells, distinct, missing = self.counts.values()
        said = f"{cells} cells, {distinct} distinct runs, {distinct - missing} done already, {missing} to run"
        errors.print(said, soft_wrap=True, markup=False)

    def as_dict(self) -> dict[str, Any]:
        """Return the counts and the runs."""
        missing = {job.run for job in self.missing}
        return {**self.counts, "runs": [{"run": name, "done": name not in missing} for name in self.cells.runs]}

    def say_runs(self) -> None:
        """Print a line for each run."""
        missing = {job.run for job in self.missing}
        table = Table("run", "cells", "state", title="Runs")
        shared = [cell.run for cell in self.cells.cells]
        for name in self.cells.runs:
            table.add_row(name, str(shared.count(name)), "to run" if name in missing else "done")
        show(table)


@dataclass(frozen=True, kw_only=True)
class Ending:
    """What came of a plan, and how long it took."""

    plan: Plan
    outcome: GridOutcome
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            **self.plan.counts,
            "reused": self.outcome.reused,
            "failed": {name: failed.error for name, failed in self.outcome.failed.items()},
            "seconds": round(self.seconds, 3),
            "results": str(self.plan.folder / f"{RESULTS}.parquet"),
        }

    def say(self, *, quiet: bool) -> None:
        """Tell which runs failed, and unless quiet how many are done."""
        for name, failed in self.outcome.failed.items():
            errors.print(f"failed {name}: {failed.error}", soft_wrap=True, markup=False)
        if not quiet:
            distinct = self.plan.counts["distinct"]
            done = f"{distinct - len(self.outcome.failed)} of {distinct} runs done in {duration(self.seconds)}"
            console.print(f"{done}; results: {self.plan.folder / RESULTS}.csv", soft_wrap=True, markup=False)


def carry_out(plan: Plan, machinery: Machinery, *, silent: bool) -> Ending:
    """Run what is missing, with progress unless silent; Ctrl-C and SIGTERM end the command with exit code 130."""
    tally = Tally({job.run: job.config for job in plan.missing}, workers=machinery.at_once)
    started = time.monotonic()
    try:
        with terminated_as_interrupted(), shown(tally, quiet=silent) as watch:
            outcome = run_grid(plan.cells, out=plan.folder, name=plan.name, engine=machinery.engine(), watch=watch)
    except KeyboardInterrupt:
        message = f"stopped; all that is done is kept in {plan.folder}. Go on with the same command"
        errors.print(message, soft_wrap=True, markup=False)
        raise typer.Exit(130) from None
    return Ending(plan=plan, outcome=outcome, seconds=time.monotonic() - started)
