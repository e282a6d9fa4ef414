"""`fedra paper`: the paper's tables and figures, ours beside the published ones."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Column, Table

from fedra.cli.console import console, errors, errors_reported, print_table
from fedra.cli.options import (
    AddRule,
    AsJson,
    DryRun,
    EngineChoice,
    Engines,
    Quiet,
    RayAddress,
    Track,
    Workers,
    rule_entry,
    split_list,
)

if TYPE_CHECKING:
    from fedra.cli.execution import EngineOptions, Plan
    from fedra.paper import DatasetStatistics, Reproduction
    from fedra.report import model
    from fedra.report.model.outcomes import ReportData

_ALL = "all"
# What is in brackets fits into one line, also where a narrow terminal breaks the entry before it.
_NARROWEST = len("(99.99, +99.99)")
_HEADINGS = ("classes", "train", "test", "clients", "mean quantity", "std", "max")


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
    add_rule: AddRule = None,
    alpha_q: Annotated[str | None, typer.Option(help="Columns instead of the protocol's, commas between.")] = None,
    data_dir: Annotated[str | None, typer.Option(help="Where data sets are; default $FEDRA_DATA.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the runs and the report.")] = Path("runs/paper"),
    workers: Workers = None,
    engine: EngineChoice = Engines.LOCAL,
    ray_address: RayAddress = None,
    track: Track = None,
    no_report: Annotated[bool, typer.Option("--no-report", help="Runs and tables only, no report.")] = False,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Make the paper's tables and figures; call it again to go on, or with other rules or seeds to add to them."""
    from fedra.cli.execution import EngineOptions
    from fedra.paper import Reproduction

    with errors_reported():
        work = Work(
            wanted=Reproduction(
                targets=_targets(targets or [_ALL]),
                protocol=protocol,
                datasets=tuple(split_list(datasets)),
                num_seeds=seeds,
                rules=None if rules is None else _rules(rules),
                added_rules=tuple(rule_entry(text) for text in add_rule or []),
                alpha_q=None if alpha_q is None else tuple(_number(text) for text in split_list(alpha_q)),
                data_dir=data_dir,
            ),
            out=out,
            engine_options=EngineOptions(kind=engine, workers=workers, ray_address=ray_address),
            track=tuple(track or ()),
            report=not no_report,
            silent=quiet or as_json,
        )
        outcome = work.plan() if dry_run else work.carry_out()
    if as_json:
        typer.echo(json.dumps(outcome, indent=2))
    if outcome.get("failed"):
        raise typer.Exit(1)


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
        raise ValueError(f"--alpha-q has {text!r}; give numbers, commas between") from None


@dataclass(frozen=True, kw_only=True)
class Work:
    """What is wanted, where it goes, and whether to speak of it on the way."""

    wanted: Reproduction
    out: Path
    engine_options: EngineOptions
    track: tuple[str, ...]
    report: bool
    silent: bool

    def plan(self) -> dict[str, Any]:
        """Say what would run, and return it as plain values."""
        plan = self._plan()
        notes = self._note([*self.wanted.absent().values(), *self._missing_data()])
        if plan is None:
            return {"notes": notes}
        if not self.silent:
            plan.print_counts()
            plan.print_runs()
        return {"notes": notes, "grid": plan.name, **plan.as_dict()}

    def carry_out(self) -> dict[str, Any]:
        """Run it, show the tables, write the report, and return what came of it as plain values."""
        from fedra.cli.execution import run_plan
        from fedra.experiments import Results
        from fedra.paper.reproduction import STATISTICS
        from fedra.report.figures import require_matplotlib
        from fedra.report.model.outcomes import ReportData

        plan = self._plan()
        if missing := self._missing_data():
            raise ValueError("; ".join(missing))
        outcome: dict[str, Any] = {"notes": self._note(self.wanted.absent().values())}
        if self.report:
            require_matplotlib()
        if STATISTICS in self.wanted.targets:
            outcome["statistics"] = self._statistics()
        if plan is None:
            return outcome
        if not self.silent:
            plan.print_counts()
        ending = run_plan(plan, self.engine_options, silent=self.silent, track=self.track)
        ending.print_summary(quiet=self.silent)
        data = ReportData.of(Results.read(self.out))
        outcome |= {"grid": plan.name, **ending.as_dict(), "entries": self._tables(data)}
        if self.report:
            outcome["report"] = self._report(data)
        return outcome

    def _plan(self) -> Plan | None:
        from fedra.cli.execution import Plan
        from fedra.paper.reproduction import DIAGRAM, STATISTICS

        grid = self.wanted.grid()
        if grid is None:
            absent = self.wanted.absent()
            if STATISTICS not in self.wanted.targets and set(absent) != {DIAGRAM}:
                raise ValueError(f"nothing to run: {'; '.join(absent.values())}")
            return None
        self.wanted.check_folder(self.out)
        return Plan.of(grid, self.out, self.wanted.name)

    def _missing_data(self) -> list[str]:
        return self.wanted.missing_data(to_run=self.engine_options.kind is Engines.LOCAL)

    def _note(self, notes: Iterable[str]) -> list[str]:
        notes = list(notes)
        if not self.silent:
            for note in notes:
                errors.print(note, soft_wrap=True, markup=False)
        return notes

    def _statistics(self) -> list[dict[str, Any]]:
        from fedra.paper.table1 import dataset_statistics

        ours = [dataset_statistics(name, self.wanted.data_dir) for name in self.wanted.datasets]
        if not self.silent:
            show_statistics(ours)
        return [asdict(line) for line in ours]

    def _tables(self, data: ReportData) -> list[dict[str, Any]]:
        from fedra.paper.tables import paper_tables
        from fedra.report.model import table_values

        tables = [
            table
            for table in paper_tables(data)
            if table.key.partition("-")[0] in self.wanted.targets and table.dataset in self.wanted.datasets
        ]
        if not self.silent:
            for table in tables:
                show_table(table)
        return [entry for table in tables for entry in table_values(table)]

    def _report(self, data: ReportData) -> str:
        from fedra.files import folder_inside
        from fedra.paper import PAPER
        from fedra.report import write_report

        if not self.silent:
            errors.print("writing the report", soft_wrap=True)
        page = str(write_report(data, folder_inside(self.out, "report"), reference=PAPER).page)
        if not self.silent:
            console.print(f"report: {page}", soft_wrap=True, markup=False)
        return page


def show_table(table: model.Table) -> None:
    """Print a table of accuracies: a section for each attack, a line for each rule, a column for each alpha_q."""
    lines = Table(Column("attack", no_wrap=True), Column("rule", no_wrap=True))
    quantities = list(dict.fromkeys(column.alpha_q for column in table.columns))
    for alpha_q in quantities:
        heading = "accuracy" if alpha_q is None else f"alpha_q {alpha_q:g}"
        lines.add_column(heading, justify="right", min_width=_NARROWEST)
    for attack in dict.fromkeys(column.attack_label for column in table.columns):
        places = {column.alpha_q: i for i, column in enumerate(table.columns) if column.attack_label == attack}
        for row, best in zip(table.rows, table.best, strict=True):
            entries = [row.entries[i] for i in places.values()]
            if any(entries):
                at = [places.get(alpha_q) for alpha_q in quantities]
                texts = ["" if i is None else _text(row.entries[i], best[i]) for i in at]
                lines.add_row(escape(attack), escape(_label(row, entries)), *texts)
        lines.add_section()
    caption = f"{table.caption} In brackets: published, and ours less published." if table.compared else table.caption
    _show(table.title, lines, caption)


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
    _show("Table 1: data sets and the quantities of their clients", lines, "IID cut, before any cap on quantities")


def _show(title: str, table: Table, caption: str) -> None:
    """Print a table with its title also where there is no terminal: several follow one another."""
    console.print(f"\n{escape(title)}", style="bold", soft_wrap=True)
    print_table(table)
    console.print(escape(caption), soft_wrap=True)


def _figures(line: DatasetStatistics) -> list[str]:
    values = [getattr(line, known.name) for known in fields(line) if known.name != "dataset"]
    return [f"{value:,.2f}" if isinstance(value, float) else f"{value:,}" for value in values]


def _label(row: model.Row, entries: Iterable[model.Entry | None]) -> str:
    """Say which rule is behind the row of the best ones."""
    behind = dict.fromkeys(entry.by for entry in entries if entry is not None and entry.mean is not None)
    return f"{row.label}: {', '.join(behind)}" if row.several and behind else row.label


def _text(entry: model.Entry | None, best: bool) -> str:
    if entry is None:
        return ""
    if entry.mean is None:
        return "none done" if entry.published is None else f"none done ({entry.published:.2f})"
    spread = "" if entry.std is None else f"±{entry.std:.2f}"
    ours = f"{entry.mean:.2f}{spread}"
    if best:
        ours = f"[bold]{ours}[/]"
    return ours if entry.difference is None else f"{ours} ({entry.published:.2f}, {entry.difference:+.2f})"
