"""The paper's tables, printed and as plain values: ours, published, and the difference."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from typing import Any

from rich.markup import escape
from rich.table import Column, Table

from fedra.cli.console import console, print_table
from fedra.experiments import DatasetStatistics, read_paper
from fedra.report import model
from fedra.report.names import printed
from fedra.report.rows import BEST_LABEL

# What is in brackets fits into one line, also where a narrow terminal breaks the entry before it.
_NARROWEST = len("(99.99, +99.99)")
_HEADINGS = ("classes", "train", "test", "clients", "mean quantity", "std", "max")


def tell_table(table: model.Table) -> None:
    """Print a table of accuracies: a section for each attack, a line for each rule, a column for each alpha_q."""
    shown = Table(Column("attack", no_wrap=True), Column("rule", no_wrap=True))
    quantities = list(dict.fromkeys(column.alpha_q for column in table.columns))
    for alpha_q in quantities:
        heading = "accuracy" if alpha_q is None else f"alpha_q {alpha_q:g}"
        shown.add_column(heading, justify="right", min_width=_NARROWEST)
    for attack in dict.fromkeys(column.attack_label for column in table.columns):
        places = {column.alpha_q: i for i, column in enumerate(table.columns) if column.attack_label == attack}
        best = {alpha_q: _best(row.entries[i] for row in table.rows) for alpha_q, i in places.items()}
        for row in table.rows:
            entries = {alpha_q: row.entries[i] for alpha_q, i in places.items()}
            if any(entries.values()):
                texts = [_text(entries.get(alpha_q), best.get(alpha_q)) for alpha_q in quantities]
                shown.add_row(escape(attack), escape(_label(row, entries.values())), *texts)
        shown.add_section()
    _tell(table.title, shown, _caption(table))


def entries_of(table: model.Table) -> list[dict[str, Any]]:
    """Return a line for each entry of a table, as plain values."""
    return [
        {
            "table": table.number,
            "dataset": table.dataset,
            "partition": table.partition,
            "setting": table.setting,
            "row": row.label,
            "attack": column.attack,
            "alpha_q": column.alpha_q,
            **asdict(entry),
            "difference": entry.difference,
        }
        for row in table.rows
        for column, entry in zip(table.columns, row.entries, strict=True)
        if entry is not None
    ]


def tell_statistics(ours: Sequence[DatasetStatistics]) -> None:
    """Print Table 1: our partitions, the paper's line under each that it has."""
    published = {line.dataset: line for line in read_paper().statistics}
    shown = Table("data set", "")
    for heading in _HEADINGS:
        shown.add_column(heading, justify="right")
    for line in ours:
        shown.add_row(line.dataset, "ours", *_figures(line))
        if line.dataset in published:
            shown.add_row(line.dataset, "published", *_figures(published[line.dataset]))
    _tell("Table 1: data sets and the quantities of their clients", shown, "IID cut, before any cap on quantities")


def _tell(title: str, table: Table, caption: str) -> None:
    """Print a table with its title also where there is no terminal: several follow one another."""
    console.print(f"\n{escape(title)}", style="bold", soft_wrap=True)
    print_table(table)
    console.print(escape(caption), soft_wrap=True)


def _figures(line: DatasetStatistics) -> list[str]:
    values = [getattr(line, known.name) for known in fields(line) if known.name != "dataset"]
    return [f"{value:,.2f}" if isinstance(value, float) else f"{value:,}" for value in values]


def _caption(table: model.Table) -> str:
    compared = any(entry and entry.difference is not None for row in table.rows for entry in row.entries)
    return f"{table.caption} In brackets: published, and ours less published." if compared else table.caption


def _label(row: model.Row, entries: Iterable[model.Entry | None]) -> str:
    """Say which rule is behind the row of the best ones."""
    behind = dict.fromkeys(printed(entry.rule) for entry in entries if entry is not None and entry.mean is not None)
    return f"{row.label}: {', '.join(behind)}" if row.label == BEST_LABEL and behind else row.label


def _best(entries: Iterable[model.Entry | None]) -> float | None:
    return max((entry.mean for entry in entries if entry is not None and entry.mean is not None), default=None)


def _text(entry: model.Entry | None, best: float | None) -> str:
    if entry is None:
        return ""
    if entry.mean is None:
        return "none done" if entry.published is None else f"none done ({entry.published:.2f})"
    spread = "" if entry.std is None else f"±{entry.std:.2f}"
    ours = f"{entry.mean:.2f}{spread}"
    if entry.mean == best:
        ours = f"[bold]{ours}[/]"
    return ours if entry.difference is None else f"{ours} ({entry.published:.2f}, {entry.difference:+.2f})"
