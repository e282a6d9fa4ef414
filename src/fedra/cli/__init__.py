"""The command line: one file for each command.

Commands import the simulation, and torch with it, when they run: `fedra rules` and `--help` answer at once.
"""

from __future__ import annotations

from typing import Annotated

import typer

from fedra import __version__
from fedra.cli.aggregate import aggregate
from fedra.cli.assess import assess
from fedra.cli.audit import audit
from fedra.cli.contest import contest
from fedra.cli.data import data_app
from fedra.cli.demo import demo
from fedra.cli.federation import federation
from fedra.cli.grid import grid
from fedra.cli.listing import attacks, rules
from fedra.cli.paper import paper
from fedra.cli.report import report
from fedra.cli.run import run

app = typer.Typer(
    name="fedra",
    help="Federated learning that stands up to clients who lie, about their update and about how much data they have.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    # Click suggests one itself.
    suggest_commands=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fedra {__version__}")
        raise typer.Exit


@app.callback()
def _fedra(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Hold what all commands share."""


app.command()(run)
app.command()(federation)
app.command()(grid)
app.command()(paper)
app.command()(contest)
app.command()(report)
app.command()(demo)
app.command()(rules)
app.command()(attacks)
app.command()(aggregate)
app.command()(audit)
app.command()(assess)
app.add_typer(data_app, name="data")
