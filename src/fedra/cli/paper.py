"""`fedra paper`: the paper's tables and figures, ours beside the published ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from fedra.cli.comparing import Comparison
from fedra.cli.console import errors_reported
from fedra.cli.options import (
    AddAttack,
    AddRule,
    AsJson,
    DryRun,
    EngineChoice,
    Engines,
    Known,
    Quiet,
    RayAddress,
    Track,
    Workers,
    attack_entry,
    rule_entry,
    split_list,
)
from fedra.cli.tables import show, show_table

if TYPE_CHECKING:
    from fedra.experiments import Grid
    from fedra.paper import DatasetStatistics, Reproduction
    from fedra.report.model.outcomes import ReportData

_ALL = "all"
_HEADINGS = ("classes", "train", "test", "clients", "mean quantity", "std", "max")


def paper(
    targets: Annotated[
        list[str] | None, typer.Argument(metavar="[TARGET]...", help="table1 to table7, figure1 to figure6, or all.")
    ] = None,
    protocol: Annotated[str, typer.Option(help="quick: about an hour for MNIST; full: the paper's own.")] = "quick",
    datasets: Annotated[
        str, typer.Option(help="mnist, cifar10, huffpost, mind, or digits, which needs no files; separated by commas.")
    ] = "mnist",
    seeds: Annotated[int, typer.Option(min=1, help="How many: 0, 1, ...")] = 1,
    rules: Annotated[str | None, typer.Option(help="Only these of the paper's rules, separated by commas.")] = None,
    add_rule: AddRule = None,
    add_attack: AddAttack = None,
    alpha_q: Annotated[str | None, typer.Option(help="Columns instead of the protocol's, separated by commas.")] = None,
    data_dir: Annotated[str | None, typer.Option(help="Where data sets are; default $FEDRA_DATA.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the runs and the report.")] = Path("runs/paper"),
    known: Known = None,
    workers: Workers = None,
    engine: EngineChoice = Engines.LOCAL,
    ray_address: RayAddress = None,
    track: Track = None,
    no_report: Annotated[bool, typer.Option("--no-report", help="Runs and tables only, no report.")] = False,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Make the paper's tables and figures; call it again to go on, or with other rules, attacks or seeds to add."""
    from fedra.cli.execution import EngineOptions
    from fedra.paper import PAPER, Reproduction

    with errors_reported():
        options = EngineOptions(kind=engine, workers=workers, ray_address=ray_address)
        wanted = Reproduction(
            targets=_targets(targets or [_ALL]),
            protocol=protocol,
            datasets=tuple(split_list(datasets)),
            num_seeds=seeds,
            rules=None if rules is None else _rules(rules),
            added_rules=tuple(rule_entry(text) for text in add_rule or []),
            added_attacks=tuple(attack_entry(text) for text in add_attack or []),
            alpha_q=None if alpha_q is None else tuple(_number(text) for text in split_list(alpha_q)),
            data_dir=data_dir,
        )
        silent = quiet or as_json
        grid = _grid(wanted)
        wanted.check_folder(out, known)
        Comparison(
            grid=grid,
            name=wanted.name,
            notes=wanted.absent().values(),
            missing_data=wanted.missing_data(to_run=engine is Engines.LOCAL),
            tables=partial(_tables, wanted, silent=silent),
            reference=PAPER,
            out=out,
            known=known,
            engine_options=options,
            track=tuple(track or ()),
            report=not no_report,
            silent=silent,
            before=partial(_statistics, wanted, silent=silent),
        ).carry_out(dry_run=dry_run, as_json=as_json)


def _targets(given: list[str]) -> tuple[str, ...]:
    from fedra.names import nearest
    from fedra.paper.reproduction import TARGETS

    for name in given:
        if name not in (*TARGETS, _ALL):
            raise ValueError(f"unknown target {name!r}{nearest(name, (*TARGETS, _ALL))}")
    return TARGETS if _ALL in given else tuple(given)


def _rules(text: str) -> tuple[str, ...]:
    """Read names of rules, also as the paper calls them: FedAdam is fedavg."""
    from fedra.paper import read_paper

    names = {theirs.lower(): ours for ours, theirs in read_paper().names.items()}
    return tuple(names.get(name.lower(), name) for name in split_list(text))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--alpha-q has {text!r}; give numbers, separated by commas") from None


def _grid(wanted: Reproduction) -> Grid | None:
    from fedra.paper.reproduction import DIAGRAM, STATISTICS

    grid, absent = wanted.grid(), wanted.absent()
    if grid is None and STATISTICS not in wanted.targets and set(absent) != {DIAGRAM}:
        raise ValueError(f"nothing to run: {'; '.join(absent.values())}")
    return grid


def _statistics(wanted: Reproduction, *, silent: bool) -> dict[str, Any]:
    from fedra.paper.reproduction import STATISTICS
    from fedra.paper.table1 import dataset_statistics

    if STATISTICS not in wanted.targets:
        return {}
    ours = [dataset_statistics(name, wanted.data_dir) for name in wanted.datasets]
    if not silent:
        show_statistics(ours)
    return {"statistics": [asdict(line) for line in ours]}


def _tables(wanted: Reproduction, data: ReportData, *, silent: bool) -> dict[str, Any]:
    from fedra.paper.tables import paper_tables
    from fedra.report.model import table_values

    tables = [
        table
        for table in paper_tables(data)
        if table.key.partition("-")[0] in wanted.targets and table.dataset in wanted.datasets
    ]
    if not silent:
        for table in tables:
            show_table(table)
    return {"entries": [entry for table in tables for entry in table_values(table)]}


def show_statistics(ours: Sequence[DatasetStatistics]) -> None:
    """Print Table 1: our partitions, the paper's line under each that it has."""
    from fedra.paper import read_paper

    published = {line.dataset: line for line in read_paper().statistics}
    lines = Table("data set", "")
    for heading in _HEADINGS:
        lines.add_column(heading, justify="right")
    for line in ours:
        lines.add_row(line.dataset, "ours", *_figures(line))
        if line.dataset in published:
            lines.add_row(line.dataset, "published", *_figures(published[line.dataset]))
    show("Table 1: data sets and the quantities of their clients", lines, "IID cut, before any cap on quantities")


def _figures(line: DatasetStatistics) -> list[str]:
    values = [getattr(line, known.name) for known in fields(line) if known.name != "dataset"]
    return [f"{value:,.2f}" if isinstance(value, float) else f"{value:,}" for value in values]
