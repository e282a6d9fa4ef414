"""`fedra paper`: the paper's tables and figures, ours beside the published ones."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from fedra.cli.console import errors_reported
from fedra.cli.options import AsJson, DryRun, EngineChoice, Engines, Quiet, RayAddress, Workers, parse_parameter

_ALL = "all"
_ADDED = "write it as my_rules:Mine, or 'my_rules:Mine cap=50 label=Capped'"


def paper(
    targets: Annotated[
        list[str] | None, typer.Argument(metavar="[TARGET]...", help="table1 to table7, figure1 to figure6, or all.")
    ] = None,
    protocol: Annotated[str, typer.Option(help="quick: about an hour for MNIST; full: the paper's own.")] = "quick",
    datasets: Annotated[
        str, typer.Option(help="mnist, cifar10, huffpost, mind, or digits, which needs no files; commas between.")
    ] = "mnist",
    seeds: Annotated[int, typer.Option(min=1, help="How many: 0, 1, ...")] = 1,
    rules: Annotated[str | None, typer.Option(help="Only these of the paper's rules, commas between.")] = None,
    add_rule: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE",
            help="One more row: a name or module:Class, and NAME=VALUE, label=TEXT where needed. May be given several "
            "times.",
        ),
    ] = None,
    alpha_q: Annotated[str | None, typer.Option(help="Columns instead of the protocol's, commas between.")] = None,
    data_dir: Annotated[str | None, typer.Option(help="Where data sets are; default $FEDRA_DATA.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the runs and the report.")] = Path("runs/paper"),
    workers: Workers = None,
    engine: EngineChoice = Engines.LOCAL,
    ray_address: RayAddress = None,
    no_report: Annotated[bool, typer.Option("--no-report", help="Runs and tables only, no report.")] = False,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Make the paper's tables and figures; call it again to go on, or with other rules or seeds to add to them."""
    from fedra.cli.execution import EngineOptions
    from fedra.cli.paper_running import Work
    from fedra.experiments import Reproduction

    with errors_reported():
        work = Work(
            wanted=Reproduction(
                targets=_targets(targets or [_ALL]),
                protocol=protocol,
                datasets=tuple(_split(datasets)),
                num_seeds=seeds,
                rules=None if rules is None else _rules(rules),
                added_rules=tuple(_rule_entry(text) for text in add_rule or []),
                alpha_q=None if alpha_q is None else tuple(_number(text) for text in _split(alpha_q)),
                data_dir=data_dir,
            ),
            out=out,
            machinery=EngineOptions(kind=engine, workers=workers, ray_address=ray_address),
            report=not no_report,
            silent=quiet or as_json,
        )
        told = work.plan_told() if dry_run else work.done()
    if as_json:
        typer.echo(json.dumps(told, indent=2))
    if told.get("failed"):
        raise typer.Exit(1)


def _targets(given: list[str]) -> tuple[str, ...]:
    from fedra.experiments.reproduction import TARGETS
    from fedra.names import nearest

    for name in given:
        if name not in (*TARGETS, _ALL):
            raise ValueError(f"unknown target {name!r}{nearest(name, (*TARGETS, _ALL))}")
    return TARGETS if _ALL in given else tuple(given)


def _rules(text: str) -> tuple[str, ...]:
    """Read names of rules, also as the paper prints them: FedAdam is fedavg."""
    from fedra.experiments import read_paper

    printed = {shown.lower(): name for name, shown in read_paper().names.items()}
    return tuple(printed.get(name.lower(), name) for name in _split(text))


def _rule_entry(text: str) -> str | dict[str, Any]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ValueError(f"--add-rule {text!r}: {error}; {_ADDED}") from error
    if not words:
        raise ValueError(f"--add-rule {text!r} names no rule; {_ADDED}")
    name, *settings = words
    if not settings:
        return name
    parameters = dict(parse_parameter(setting, f"--add-rule {name}") for setting in settings)
    label = parameters.pop("label", None)
    return {"rule": name, "params": parameters} | ({} if label is None else {"label": str(label)})


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--alpha-q has {text!r}; give numbers, commas between") from None


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
