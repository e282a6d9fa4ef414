"""`fedra contest`: all rules against all attacks, and which of them is never far behind the best."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.markup import escape
from rich.table import Column, Table

from fedra.cli.comparing import Comparison
from fedra.cli.console import console, errors_reported
from fedra.cli.options import (
    AddRule,
    AsJson,
    DataDir,
    DryRun,
    EngineChoice,
    Engines,
    Known,
    Quiet,
    RayAddress,
    Track,
    Workers,
    rule_entry,
    split_list,
)
from fedra.cli.tables import show

if TYPE_CHECKING:
    from fedra.contest import Contest
    from fedra.contest.leaderboard import Board
    from fedra.report import model
    from fedra.report.model.outcomes import ReportData


# Columns of figures on a terminal, so that what has words has room.
_NARROW = 9


def contest(
    settings: Annotated[
        str | None,
        typer.Option(help="mnist-iid, mnist-non-iid, cifar10-iid, digits-silos, huffpost-iid; separated by commas."),
    ] = None,
    rules: Annotated[str | None, typer.Option(help="Only these of the contest's rules, separated by commas.")] = None,
    attacks: Annotated[str | None, typer.Option(help="Only these of its attacks, separated by commas.")] = None,
    seeds: Annotated[str | None, typer.Option(help="Such as 2,3,4; default: the contest's.")] = None,
    add_rule: AddRule = None,
    broken: Annotated[
        bool, typer.Option("--broken", help="With more attackers than the rules assume, and with few silos.")
    ] = False,
    rounds: Annotated[int | None, typer.Option(min=1, help="Instead of the contest's, to try it.")] = None,
    data_dir: DataDir = None,
    out: Annotated[Path, typer.Option(help="Folder for the runs and the report.")] = Path("runs/contest"),
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
    """Hold the contest of all rules; call it again to go on, or with other rules or seeds to add to it."""
    from fedra.cli.execution import EngineOptions
    from fedra.contest import CONTEST, Contest

    with errors_reported():
        options = EngineOptions(kind=engine, workers=workers, ray_address=ray_address)
        wanted = Contest(
            settings=_names(settings),
            rules=_names(rules),
            attacks=_names(attacks),
            seeds=None if seeds is None else tuple(_whole(text) for text in split_list(seeds)),
            added_rules=tuple(rule_entry(text) for text in add_rule or []),
            broken=broken,
            data_dir=data_dir,
            rounds=rounds,
        )
        silent = quiet or as_json
        wanted.check_folder(out, known)
        Comparison(
            grid=wanted.grid,
            name=wanted.name,
            notes=wanted.notes(),
            missing_data=wanted.missing_data(to_run=engine is Engines.LOCAL),
            tables=partial(_tables, wanted, silent=silent),
            reference=CONTEST,
            out=out,
            known=known,
            engine_options=options,
            track=tuple(track or ()),
            report=not no_report,
            silent=silent,
        ).carry_out(dry_run=dry_run, as_json=as_json)


def _names(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(split_list(text))


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"--seeds has {text!r}; give whole numbers, separated by commas") from None


def _tables(wanted: Contest, data: ReportData, *, silent: bool) -> dict[str, Any]:
    from fedra.contest.leaderboard import standing_values
    from fedra.contest.reference import boards
    from fedra.contest.tables import contest_tables
    from fedra.report.model import table_values

    tables = contest_tables(data, broken=wanted.broken)
    if not silent:
        for table in tables:
            show_setting(table)
        for board in boards(tables, broken=wanted.broken):
            show_board(board)
    return {
        "standings": standing_values(tables),
        "entries": [entry for table in tables for entry in table_values(table)],
    }


def show_setting(table: model.Table) -> None:
    """Print a setting narrowly: a line for each rule, a column for each attack, whole percents for each alpha_q."""
    attacks = list(dict.fromkeys(column.attack_label for column in table.columns))
    lines = _narrow(Column("rule", no_wrap=True, overflow="ellipsis"))
    for attack in attacks:
        lines.add_column(escape(attack), justify="right", overflow="fold")
    for row, best in zip(table.rows, table.best, strict=True):
        texts = []
        for attack in attacks:
            places = [at for at, column in enumerate(table.columns) if column.attack_label == attack]
            texts.append("/".join(_accuracy(row, at, best[at]) for at in places))
        lines.add_row(escape(row.label), *texts)
    quantities = dict.fromkeys(f"{column.alpha_q:g}" for column in table.columns if column.alpha_q is not None)
    notes = [f"alpha_q: {'/'.join(quantities)}."] if quantities else []
    if any(row.refusals for row in table.rows):
        notes.append("ref: the rule refuses so few clients.")
    show(table.title, lines, " ".join([table.caption, *notes]))


def show_board(board: Board) -> None:
    """Print a table of texts."""
    lines = _narrow()
    for at, head in enumerate(board.heads):
        side: Literal["left", "right"] = "left" if at in board.texts else "right"
        width = _NARROW if console.is_terminal and at not in board.texts else None
        lines.add_column(escape(head), justify=side, no_wrap=at == 0, overflow="fold", max_width=width)
    for line in board.lines:
        lines.add_row(*map(escape, line))
    show(board.title, lines, board.caption)


def _narrow(*columns: Column) -> Table:
    """Return a table without lines between columns, of which more fit into a narrow terminal."""
    return Table(*columns, box=None, padding=(0, 1, 0, 0), pad_edge=False)


def _accuracy(row: model.Row, at: int, best: bool) -> str:
    entry = row.entries[at]
    if entry is None or entry.mean is None:
        return "ref" if at in row.refusals else "-"
    return f"[bold]{entry.mean:.0f}[/]" if best else f"{entry.mean:.0f}"
