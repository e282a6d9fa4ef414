"""Running a grid from the command line: what is to do, live progress, and what came of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from fedra.cli.console import console, errors, interruptible, is_terminal, print_table
from fedra.cli.options import Engines
from fedra.data import dataset_status
from fedra.experiments import (
    Engine,
    Event,
    Failed,
    Finished,
    Grid,
    GridOutcome,
    Job,
    LocalEngine,
    RayEngine,
    Results,
    Tally,
    check_feasible,
    missing_runs,
    run_grid,
    usable_cores,
)
from fedra.experiments.grid_folder import RESULTS
from fedra.experiments.tally import Running
from fedra.trackers import make_trackers

_SECONDS_BETWEEN_LINES = 10.0
_MOST_LISTED = 16
_LEAST_BAR, _MOST_BAR = 4, 24

Watch = Callable[[Event], None]


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
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
    """A grid, its folder and its name there, results that are known from elsewhere, and what is still to run."""

    cells: Grid
    folder: Path
    name: str
    known: Results | None
    missing: tuple[Job, ...]

    @classmethod
    def of(cls, cells: Grid, folder: Path, name: str, known: Path | None = None) -> Plan:
        """Look into the folder for what is there, and into that of results which are `known`."""
        earlier = None if known is None else Results.read(known)
        missing = missing_runs(cells, folder, () if earlier is None else earlier.done)
        return cls(cells=cells, folder=folder, name=name, known=earlier, missing=tuple(missing))

    def results(self) -> Results:
        """Return what the folder holds, and what is known besides."""
        found = Results.read(self.folder)
        return found if self.known is None else found.added_to(self.known)

    @property
    def counts(self) -> dict[str, int]:
        """How many cells, distinct runs, and runs to do."""
        return {"cells": len(self.cells.cells), "distinct": len(self.cells.runs), "missing": len(self.missing)}

    def missing_data(self) -> list[str]:
        """Return a line for each data set that runs need and that is not there, with what to do."""
        needed: dict[tuple[str, str | None], None] = {}
        for job in self.missing:
            place = None if job.config.data_dir is None else str(job.config.data_dir)
            needed.setdefault((job.config.dataset, place))
        return [
            f"{status.name} is {status.state}: {status.remedy}, and name that directory by --data-dir or FEDRA_DATA"
            for name, place in needed
            for status in dataset_status(place)
            if status.name == name and not status.ready
        ]

    def check(self, options: EngineOptions) -> None:
        """Raise where the federation of a run to do is not possible with its data; only a cluster has its own data."""
        if options.kind is Engines.LOCAL:
            check_feasible(self.missing)

    def print_counts(self) -> None:
        """Print how many cells are how many runs."""
        cells, distinct, missing = self.counts.values()
        counts = f"{cells} cells, {distinct} distinct runs, {distinct - missing} done already, {missing} to run"
        errors.print(counts, soft_wrap=True, markup=False)

    def as_dict(self) -> dict[str, Any]:
        """Return the counts and the runs."""
        missing = {job.run for job in self.missing}
        return {**self.counts, "runs": [{"run": name, "done": name not in missing} for name in self.cells.runs]}

    def print_runs(self) -> None:
        """Print a line for each run."""
        missing = {job.run for job in self.missing}
        table = Table("run", "cells", "state", title="Runs")
        shared = [cell.run for cell in self.cells.cells]
        for name in self.cells.runs:
            table.add_row(name, str(shared.count(name)), "to run" if name in missing else "done")
        print_table(table)


@dataclass(frozen=True, kw_only=True)
class PlanOutcome:
    """What came of a plan: its outcome as a grid, and how long it took."""

    plan: Plan
    grid: GridOutcome
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            **self.plan.counts,
            "reused": self.grid.reused,
            "failed": {name: failed.error for name, failed in self.grid.failed.items()},
            "seconds": round(self.seconds, 3),
            "results": str(self.plan.folder / f"{RESULTS}.parquet"),
        }

    def print_summary(self, *, quiet: bool) -> None:
        """Print which runs failed, and unless quiet how many are done."""
        for name, failed in self.grid.failed.items():
            errors.print(f"failed {name}: {failed.error}", soft_wrap=True, markup=False)
        if not quiet:
            distinct = self.plan.counts["distinct"]
            done = f"{distinct - len(self.grid.failed)} of {distinct} runs done in {duration(self.seconds)}"
            console.print(f"{done}; results: {self.plan.folder / RESULTS}.csv", soft_wrap=True, markup=False)


def run_plan(plan: Plan, options: EngineOptions, *, silent: bool, track: Sequence[str] = ()) -> PlanOutcome:
    """Run what is missing, with progress unless silent; Ctrl-C and SIGTERM end the command with exit code 130.

    `track` are trackers to watch each run; all of them keep what they see in one place for the grid.
    """
    observers = make_trackers(track, root=plan.folder / "tracking")
    tally = Tally({job.run: job.config for job in plan.missing}, workers=options.at_once)
    started = time.monotonic()
    try:
        with interruptible(), grid_progress(tally, quiet=silent) as watch:
            outcome = run_grid(
                plan.cells,
                out=plan.folder,
                name=plan.name,
                engine=options.engine(),
                watch=watch,
                observers=observers,
                known=() if plan.known is None else plan.known.done,
            )
    except KeyboardInterrupt:
        message = f"stopped; everything done so far is kept in {plan.folder}. Resume with the same command"
        errors.print(message, soft_wrap=True, markup=False)
        raise typer.Exit(130) from None
    return PlanOutcome(plan=plan, grid=outcome, seconds=time.monotonic() - started)


@contextmanager
def grid_progress(tally: Tally, *, quiet: bool = False) -> Iterator[Watch]:
    """Show the progress of a grid, a table on a terminal and plain lines elsewhere; yield what to call with events."""
    if quiet:
        yield tally.add
    elif is_terminal():
        with Live(get_renderable=lambda: _picture(tally), console=errors, refresh_per_second=2, transient=True):
            yield tally.add
    else:
        yield _lines(tally)


def duration(seconds: float | None) -> str:
    """Return a length of time in words."""
    if seconds is None:
        return "unknown"
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def percent(accuracy: float | None) -> str:
    """Return an accuracy, or a dash before the first."""
    return "-" if accuracy is None else f"{accuracy:.1f}"


def _summary(tally: Tally) -> str:
    failed = f", {len(tally.failed)} failed" if tally.failed else ""
    return f"{len(tally.finished)}/{len(tally.runs)} runs done{failed}, time left: {duration(tally.seconds_left)}"


def _picture(tally: Tally) -> Group:
    whole = Table.grid(padding=(0, 2, 0, 0))
    words = _summary(tally)
    # A bar is worth less than the words beside it.
    width = max(_LEAST_BAR, min(_MOST_BAR, errors.width - len(words) - 4))
    bar = ProgressBar(total=max(1, len(tally.runs)), completed=tally.ended, width=width)
    whole.add_row(bar, Text(words, style="bold red" if tally.failed else "bold"))
    running = Table.grid(padding=(0, 2, 0, 0))
    running.add_column(overflow="ellipsis", no_wrap=True)
    for name, state in list(tally.running.items())[:_MOST_LISTED]:
        accuracy = f"accuracy {percent(state.accuracy)}"
        running.add_row(Text(name), Text(_rounds(tally, name, state), justify="right"), Text(accuracy))
    return Group(whole, running)


def _rounds(tally: Tally, name: str, state: Running) -> str:
    return f"{state.round}/{tally.runs[name].rounds}"


def _lines(tally: Tally) -> Watch:
    last_line = time.monotonic()

    def write(line: str) -> None:
        nonlocal last_line
        last_line = time.monotonic()
        errors.print(line, soft_wrap=True, markup=False)

    def watch(event: Event) -> None:
        tally.add(event)
        if isinstance(event, Finished):
            write(f"done {event.run}: accuracy {percent(event.accuracy)}, {duration(event.seconds)}; {_summary(tally)}")
        elif isinstance(event, Failed):
            write(f"failed {event.run}: {event.error}; {_summary(tally)}")
        elif time.monotonic() - last_line > _SECONDS_BETWEEN_LINES:
            running = "; ".join(
                f"{name} round {_rounds(tally, name, state)} accuracy {percent(state.accuracy)}"
                for name, state in list(tally.running.items())[:_MOST_LISTED]
            )
            write(f"running {running}; {_summary(tally)}")

    return watch
