"""`fedra grid`: all runs of a grid, as many at a time as there are cores, and only what is missing."""

from __future__ import annotations

import json
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from fedra.cli.console import console, errors, mistakes_told, show, terminated_as_interrupted
from fedra.cli.grid_progress import duration, shown
from fedra.experiments import (
    Engine,
    Grid,
    GridOutcome,
    LocalEngine,
    RayEngine,
    Tally,
    missing_runs,
    run_grid,
    usable_cores,
)
from fedra.experiments.folder import RESULTS


class Engines(StrEnum):
    """Where cells can run."""

    LOCAL = "local"
    RAY = "ray"


def grid(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="TOML file with the grid.")],
    out: Annotated[Path | None, typer.Option(help="Folder for all runs; default: runs/ and the file's name.")] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Runs at a time; default: one for each core, or all that Ray has.")
    ] = None,
    engine: Annotated[Engines, typer.Option(help="Processes on this machine, or an existing Ray cluster.")] = (
        Engines.LOCAL
    ),
    ray_address: Annotated[
        str | None, typer.Option(help="Of the Ray cluster; default: $RAY_ADDRESS, or this machine's.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Tell what would run, and run nothing.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no summary.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """Run a grid of simulations; call it again to go on where it stopped."""
    with mistakes_told():
        if ray_address is not None and engine is not Engines.RAY:
            raise ValueError(f"--ray-address {ray_address} is for --engine ray; this is --engine {engine}")
        cells = Grid.read(file)
        folder = out or Path("runs") / file.stem
        runs = missing_runs(cells, folder)
        counts = {"cells": len(cells.cells), "distinct": len(cells.runs), "missing": len(runs)}
        silent = quiet or as_json
        if not silent:
            errors.print(_counted(**counts), soft_wrap=True, markup=False)
        if dry_run:
            _tell_plan(cells, counts, {job.run for job in runs}, as_json=as_json)
            return
        at_once = usable_cores() if engine is Engines.LOCAL else None
        tally = Tally({job.run: job.config for job in runs}, workers=workers or at_once)
        started = time.monotonic()
        try:
            with terminated_as_interrupted(), shown(tally, quiet=silent) as watch:
                outcome = run_grid(
                    cells, out=folder, name=file.stem, engine=_engine(engine, workers, ray_address), watch=watch
                )
        except KeyboardInterrupt:
            message = f"stopped; all that is done is kept in {folder}. Go on with the same command"
            errors.print(message, soft_wrap=True, markup=False)
            raise typer.Exit(130) from None
    _tell_outcome(outcome, counts, folder, time.monotonic() - started, as_json=as_json, quiet=quiet)
    if outcome.failed:
        raise typer.Exit(1)


def _engine(kind: Engines, workers: int | None, ray_address: str | None) -> Engine:
    if kind is Engines.RAY:
        return RayEngine(address=ray_address, workers=workers)
    return LocalEngine(workers=workers)


def _counted(*, cells: int, distinct: int, missing: int) -> str:
    return f"{cells} cells, {distinct} distinct runs, {distinct - missing} done already, {missing} to run"


def _tell_plan(cells: Grid, counts: dict[str, int], missing: set[str], *, as_json: bool) -> None:
    if as_json:
        runs = [{"run": name, "done": name not in missing} for name in cells.runs]
        typer.echo(json.dumps({**counts, "runs": runs}, indent=2))
        return
    table = Table("run", "cells", "state", title="Runs")
    shared = [cell.run for cell in cells.cells]
    for name in cells.runs:
        table.add_row(name, str(shared.count(name)), "to run" if name in missing else "done")
    show(table)


def _tell_outcome(
    outcome: GridOutcome, counts: dict[str, int], folder: Path, seconds: float, *, as_json: bool, quiet: bool
) -> None:
    if as_json:
        told: dict[str, Any] = {
            **counts,
            "reused": outcome.reused,
            "failed": {name: failed.error for name, failed in outcome.failed.items()},
            "seconds": round(seconds, 3),
            "results": str(folder / f"{RESULTS}.parquet"),
        }
        typer.echo(json.dumps(told, indent=2))
        return
    for name, failed in outcome.failed.items():
        errors.print(f"failed {name}: {failed.error}", soft_wrap=True, markup=False)
    if not quiet:
        done = counts["distinct"] - len(outcome.failed)
        said = f"{done} of {counts['distinct']} runs done in {duration(seconds)}; results: {folder / RESULTS}.csv"
        console.print(said, soft_wrap=True, markup=False)
