"""`fedra report`: tables, figures and one page, of a grid's folder, of compact results, or of one run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from fedra.cli.console import console, errors, errors_reported, is_terminal, now_and_then

if TYPE_CHECKING:
    from fedra.report import Report


Step = Callable[[str, int, int], None]


def report(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder of fedra grid, fedra paper or fedra run, or compact files.")
    ],
    out: Annotated[Path | None, typer.Option(help="Folder for the report; default: report in DIR.")] = None,
    compact: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write the results here too, as three small files.")
    ] = None,
    add: Annotated[
        bool, typer.Option("--add", help="Add to what --compact FOLDER holds already, and report all of it.")
    ] = False,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    no_figures: Annotated[
        bool, typer.Option("--no-figures", help="No PNG, SVG and PDF, which need matplotlib.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no summary.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was written as JSON.")] = False,
) -> None:
    """Write the tables, the figures, and one HTML page that works offline, of whatever has been run."""
    with errors_reported():
        # Imported late: drawing and data frames take a second, which --help should not.
        from fedra.contest import CONTEST
        from fedra.paper import PAPER
        from fedra.report import build_report
        from fedra.report.reference import combined

        with _progress(quiet=quiet or as_json) as progress:
            made = build_report(
                *(folder, out),
                title=title,
                figures=not no_figures,
                compact=compact,
                added=add,
                progress=progress,
                reference=combined(CONTEST, PAPER),
            )
    if as_json:
        typer.echo(json.dumps(_values(made), indent=2))
    elif not quiet:
        for line in _lines(made):
            console.print(line, soft_wrap=True, markup=False)


def _values(made: Report) -> dict[str, object]:
    return {
        "page": str(made.page),
        "summary": str(made.summary),
        "tables": [str(file) for file in made.tables],
        "figures": [str(file) for file in made.figures],
        **({"missing_figures": list(made.missing)} if made.missing else {}),
        "runs": dict(made.counts),
        **made.values,
        "compact": None if made.compact is None else str(made.compact),
    }


def _lines(made: Report) -> Iterator[str]:
    yield f"runs: {', '.join(f'{count} {state}' for state, count in made.counts.items())}"
    yield f"page: {made.page}"
    yield f"summary: {made.summary}"
    yield f"tables: {len(made.tables)} files in {made.tables[0].parent}"
    if made.figures:
        yield f"figures: {len(made.figures)} files in {made.figures[0].parent}"
    if made.missing:
        yield f"no results for {', '.join(made.missing)}"
    yield from made.notes
    if made.compact is not None:
        yield f"compact results: {made.compact}"


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Step | None]:
    """Yield what to call with how far it is: a bar on a terminal, a line now and then elsewhere."""
    if quiet:
        yield None
    elif is_terminal():
        columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn())
        with Progress(*columns, console=errors, transient=True) as bars:
            tasks = {}

            def draw(what: str, done: int, of: int) -> None:
                if what not in tasks:
                    tasks[what] = bars.add_task(what)
                bars.update(tasks[what], completed=done, total=of)

            yield draw
    else:
        yield now_and_then(lambda what, done, of: f"{what}: {done} of {of}")
