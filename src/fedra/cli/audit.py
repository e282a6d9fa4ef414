"""`fedra audit`: who was left out of a deployment's rounds, how often, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedra.audit.command import audit as summarised
from fedra.cli.console import errors_reported


def audit(
    file: Annotated[Path, typer.Argument(help="The audit trail that a strategy wrote, JSON Lines.")],
    html: Annotated[Path | None, typer.Option(help="Write a page with the timeline of each client.")] = None,
) -> None:
    """Summarise an audit trail: who was dropped how often, and why."""
    with errors_reported():
        typer.echo(summarised(file, html))
