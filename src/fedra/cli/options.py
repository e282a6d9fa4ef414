"""Flags and arguments that several commands have, and how they are read; importing them costs nothing."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from fedra.names import parse_spec


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
Known = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Results that are there already, such as the compact ones of fedra report: runs that are complete in them "
        "are not run again, and are part of the tables.",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="List what would run, and run nothing.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no summary.")]
Track = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TRACKER",
        help="tensorboard, mlflow, wandb or module:Class, also 'mlflow folder=DIR'; may be given several times.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")]
AddRule = Annotated[
    list[str] | None,
    typer.Option(
        metavar="RULE",
        help="One more row: a name or module:Class, and NAME=VALUE, label=TEXT, before=nnm where needed. May be "
        "given several times.",
    ),
]

AddAttack = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ATTACK",
        help="One more attack in the tables: a name or module:function, and NAME=VALUE, label=TEXT where needed. "
        "May be given several times.",
    ),
]

_ADDED = "write it as my_rules:Mine, or 'my_rules:Mine cap=50 label=Capped'"
_ADDED_ATTACK = "write it as sign-flip, or 'my_attacks:mine factor=5 label=Mine'"


def rule_entry(text: str) -> str | dict[str, Any]:
    """Read --add-rule as an entry of a grid's `rules`."""
    name, parameters = parse_spec(text, "--add-rule", _ADDED)
    if not parameters:
        return name
    others: dict[str, Any] = {key: str(parameters.pop(key)) for key in ("label", "before") if key in parameters}
    return {"rule": name, "params": parameters, **others}


def attack_entry(text: str) -> str | dict[str, Any]:
    """Read --add-attack as an entry of a grid's `attacks`."""
    name, parameters = parse_spec(text, "--add-attack", _ADDED_ATTACK)
    if not parameters:
        return name
    label: dict[str, Any] = {"label": str(parameters.pop("label"))} if "label" in parameters else {}
    return {"attack": name, "params": parameters, **label}


def split_list(text: str) -> list[str]:
    """Read a list with separated by commas."""
    return [part.strip() for part in text.split(",") if part.strip()]
