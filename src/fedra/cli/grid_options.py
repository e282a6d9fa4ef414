"""Flags that all commands have which run grids; importing them costs nothing."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class Engines(StrEnum):
    """Where cells can run."""

    LOCAL = "local"
    RAY = "ray"


Workers = Annotated[
    int | None, typer.Option(min=1, help="Runs at a time; default: one for each core, or all that Ray has.")
]
EngineChoice = Annotated[Engines, typer.Option(help="Processes on this machine, or an existing Ray cluster.")]
RayAddress = Annotated[str | None, typer.Option(help="Of the Ray cluster; default: $RAY_ADDRESS, or this machine's.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Tell what would run, and run nothing.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no summary.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")]
