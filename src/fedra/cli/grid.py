"""`fedra grid`: all runs of a grid, as many at a time as there are cores, and only what is missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from fedra.cli.console import errors, errors_reported
from fedra.cli.options import AsJson, DataDir, DryRun, EngineChoice, Engines, Quiet, RayAddress, Track, Workers


def grid(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="TOML file with the grid.")],
    out: Annotated[Path | None, typer.Option(help="Folder for all runs; default: runs/ and the file's name.")] = None,
    data_dir: DataDir = None,
    workers: Workers = None,
    engine: EngineChoice = Engines.LOCAL,
    ray_address: RayAddress = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="Import code that the file names, such as a rule module:Class.")
    ] = False,
    track: Track = None,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run a grid of simulations; call it again to go on where it stopped."""
    from fedra.cli.execution import EngineOptions, Plan, run_plan
    from fedra.experiments import Grid

    with errors_reported():
        options = EngineOptions(kind=engine, workers=workers, ray_address=ray_address)
        cells = Grid.read(file, trust=trust)
        if data_dir is not None:
            cells = cells.with_data_dir(data_dir)
        plan = Plan.of(cells, out or Path("runs") / file.stem, file.stem)
        silent = quiet or as_json
        if not silent:
            plan.print_counts()
        if dry_run:
            if as_json:
                typer.echo(json.dumps({**plan.as_dict(), "missing_data": plan.missing_data()}, indent=2))
            else:
                plan.print_runs()
                for missing in plan.missing_data():
                    errors.print(missing, soft_wrap=True, markup=False)
            return
        # On a cluster the data lie elsewhere, and only its machines can look.
        if engine is Engines.LOCAL and (absent := plan.missing_data()):
            raise ValueError("; ".join(absent))
        outcome = run_plan(plan, options, silent=silent, track=track or ())
    if as_json:
        typer.echo(json.dumps(outcome.as_dict(), indent=2))
    else:
        outcome.print_summary(quiet=quiet)
    if outcome.grid.failed:
        raise typer.Exit(1)
