"""`fedra data`: what data sets there are, and getting those that can be downloaded."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
from rich.table import Table

from fedra.cli.console import console, errors, errors_reported, is_terminal, print_table
from fedra.cli.options import DataDir
from fedra.data import DATASETS, dataset_status, download_dataset, resolve_data_dir

data_app = typer.Typer(help="List the data sets, or get one.", invoke_without_command=True)

_NAMES = ", ".join(name for name, spec in DATASETS.items() if spec.source is not None)
Downloadable = Annotated[str, typer.Argument(help=f"One of {_NAMES}.")]


@data_app.callback()
def data(context: typer.Context, data_dir: DataDir = None) -> None:
    """List the data sets: which are there, which are missing, and what to do."""
    if context.invoked_subcommand is not None:
        return
    with errors_reported():
        table = Table("data set", "state", "where, or what is missing", title="Data sets")
        for status in dataset_status(data_dir):
            if status.ready:
                size = f" ({status.size / 1e6:.0f} MB)" if status.size else ""
                where = ", ".join(sorted({str(path.parent) for path, _ in status.found})) or status.summary
                table.add_row(status.name, "[green]ready[/]", escape(where) + size)
            else:
                table.add_row(status.name, f"[yellow]{status.state}[/]", _joined(status.remedy, status.note))
        print_table(table)


def _joined(*sentences: str | None) -> str:
    return "; ".join(escape(sentence) for sentence in sentences if sentence)


@data_app.command("get")
def get(name: Downloadable, data_dir: DataDir = None) -> None:
    """Download a data set, checked against its checksum; an interrupted download goes on where it stopped."""
    with errors_reported():
        target = resolve_data_dir(data_dir)
        if target is None:
            raise ValueError("no data directory; give --data-dir DIR, or set FEDRA_DATA")
        if is_terminal():
            columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
            with Progress(*columns, console=errors) as bar:
                tasks = {}

                def follow(file: str, done: int, total: int | None) -> None:
                    if file not in tasks:
                        tasks[file] = bar.add_task(file, total=total)
                    bar.update(tasks[file], completed=done, total=total)

                paths = download_dataset(name, Path(target), progress=follow)
        else:
            paths = download_dataset(name, Path(target))
    for path in paths:
        console.print(str(path), soft_wrap=True, markup=False)
