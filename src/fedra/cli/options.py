"""Flags and arguments that several commands have; importing them costs nothing."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class Engines(StrEnum):
    """Where cells can run."""

    LOCAL = "local"
    RAY = "ray"


DataDir = Annotated[str | None, typer.Option(help="Where data sets are; default $FEDRA_DATA.")]
Parameters = Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="May be given several times.")]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Runs at a time; default: one for each core, or all that Ray has.")
]
EngineChoice = Annotated[Engines, typer.Option(help="Processes on this machine, or an existing Ray cluster.")]
RayAddress = Annotated[str | None, typer.Option(help="Of the Ray cluster; default: $RAY_ADDRESS, or this machine's.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="List what would run, and run nothing.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no summary.")]
Track = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TRACKER",
        help="tensorboard, mlflow, wandb or module:Class, also 'mlflow folder=DIR'; several times if you like.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")]
