"""`fedra grid`: all runs of a grid, as many at a time as there are cores, and only what is missing."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedra.cli.console import console, errors, errors_reported
from fedra.cli.options import AsJson, DataDir, DryRun, EngineChoice, Engines, Known, Quiet, RayAddress, Track, Workers
from fedra.cli.tables import show_table

if TYPE_CHECKING:
    from fedra.cli.execution import Plan
    from fedra.report import Table


def grid(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="TOML file with the grid.")],
    out: Annotated[Path | None, typer.Option(help="Folder for all runs; default: runs/ and the file's name.")] = None,
    data_dir: DataDir = None,
    known: Known = None,
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
    from fedra.report.model import table_values

    with errors_reported():
        options = EngineOptions(kind=engine, workers=workers, ray_address=ray_address)
        cells = Grid.read(file, trust=trust)
        if data_dir is not None:
            cells = cells.with_data_dir(data_dir)
        plan = Plan.of(cells, out or Path("runs") / file.stem, file.stem, known)
        silent = quiet or as_json
        if not silent:
            plan.print_counts()
        if dry_run:
            plan.check(options)
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
        plan.check(options)
        outcome = run_plan(plan, options, silent=silent, track=track or ())
        tables = _tables(plan)
    if as_json:
        entries = [entry for table in tables for entry in table_values(table)]
        typer.echo(json.dumps({**outcome.as_dict(), "entries": entries}, indent=2))
    else:
        outcome.print_summary(quiet=quiet)
        if not quiet:
            for table in tables:
                show_table(table)
            console.print(f"\nreport: fedra report {shlex.quote(str(plan.folder))}", soft_wrap=True, markup=False)
    if outcome.grid.failed:
        raise typer.Exit(1)


def _tables(plan: Plan) -> tuple[Table, ...]:
    """Return the tables of this grid, without the other ones of its folder."""
    from fedra.report.model.comparison import grid_tables
    from fedra.report.model.outcomes import ReportData

    data = ReportData.of(plan.results())
    return grid_tables(data, without={outcome.grid for outcome in data.outcomes} - {plan.name})
