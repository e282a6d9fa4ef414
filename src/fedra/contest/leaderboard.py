"""The contest in tables of texts: the leaderboard, each setting, and what the rules do to honest clients."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from fedra.contest.standings import Standing, column_name, place_name, standings
from fedra.report.formats.csv import lines_csv
from fedra.report.formats.latex import lines_latex
from fedra.report.formats.markdown import DASH, REFUSES, escaped, lines_markdown
from fedra.report.model import Column, Entry, Row, Table
from fedra.report.model.outcomes import NO_ATTACK
from fedra.report.reference import TextTable

# Figures of the results that tables show, in percent, and what they are called.
MEASURES = {
    "malicious_weight": "attackers' weight",
    "honest_dropped": "honest clients dropped",
    "honest_data_dropped": "honest data dropped",
    "honest_silenced": "honest clients silenced",
    "attack_success": "backdoor success",
}
_ALREADY_PERCENT = ("attack_success",)
_STRONGEST = "adaptive"


@dataclass(frozen=True, kw_only=True)
class Board:
    """A table of texts with its file name, title and caption."""

    key: str
    title: str
    caption: str
    heads: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    texts: frozenset[int] = frozenset({0})

    def markdown(self) -> str:
        """Return it as Markdown."""
        body = ([escaped(text) for text in line] for line in self.lines)
        return f"**{escaped(self.title)}.** {escaped(self.caption)}\n\n" + lines_markdown(
            [escaped(head) for head in self.heads], body
        )

    def files(self) -> dict[str, str]:
        """Return it as Markdown, CSV and LaTeX, by file name."""
        caption = f"{self.title}. {self.caption}"
        return {
            f"{self.key}.md": self.markdown(),
            f"{self.key}.csv": lines_csv(self.heads, self.lines),
            f"{self.key}.tex": lines_latex(self.heads, self.lines, caption=caption, key=self.key),
        }

    def text_table(self, *, folded: bool | None = None) -> TextTable:
        """Return it for the page, under a heading by which it can be folded away unless `folded` is None."""
        return TextTable(
            label=self.title,
            heads=self.heads,
            lines=self.lines,
            numbers=frozenset(range(len(self.heads))) - self.texts,
            heading="" if folded is None else self.title,
            folded=bool(folded),
            caption=self.caption,
        )


def leaderboard(tables: Sequence[Table], *, key: str, title: str) -> Board:
    """Return the rules by worst regret, with the cell in which each is worst."""
    found = standings(tables)
    refusing = any(standing.refused for standing in found)
    heads = ("rule", "worst regret", "where", "mean regret", "mean accuracy", "cells")
    return Board(
        key=key,
        title=title,
        caption="Regret: points of accuracy by which the best rule of a cell is better, of means over the seeds that "
        "the rules of the cell share."
        + (" Cells in which a rule refuses so few clients do not count for it." if refusing else ""),
        heads=heads,
        lines=tuple(_standing(standing) for standing in found),
        texts=frozenset({0, 2}),
    )


def by_setting(tables: Sequence[Table], *, key: str, title: str) -> Board:
    """Return each rule's worst regret and mean accuracy in each setting, in the order of the leaderboard."""
    parts = [{standing.rule: standing for standing in standings([table])} for table in tables]
    heads = [head for table in tables for head in (f"{place_name(table)}: worst", f"{place_name(table)}: mean")]
    lines = []
    for standing in standings(tables):
        texts = [standing.label]
        for part in parts:
            own = part.get(standing.rule)
            texts += [DASH, DASH] if own is None else [f"{own.worst.points:.1f}", f"{own.mean_accuracy:.1f}"]
        lines.append(tuple(texts))
    return Board(
        key=key,
        title=title,
        caption="Worst regret and mean accuracy over the cells of each setting.",
        heads=("rule", *heads),
        lines=tuple(lines),
    )


def price_board(tables: Sequence[Table], *, key: str, title: str) -> Board:
    """Return what a choice comes to: what each rule costs where nobody attacks, and what it holds against the worst."""
    ends = (("no attack", _clean), ("adaptive", lambda column: column.attack == _STRONGEST))
    lines = []
    for standing in standings(tables):
        silenced = _mean(tables, standing.rule, "honest_silenced", _clean)
        texts = [standing.label, f"{standing.worst.points:.1f}", DASH if silenced is None else f"{silenced:.1f}"]
        for table in tables:
            texts += [_accuracy(table, standing.rule, fits) for _, fits in ends]
        lines.append(tuple(texts))
    heads = [f"{place_name(table)}: {name}" for table in tables for name, _ in ends]
    return Board(
        key=key,
        title=title,
        caption="Accuracy in percent where nobody attacks, and under attackers who see every update and know the rule. "
        "Worst regret over all cells. Silenced: of honest clients, in percent, where nobody attacks.",
        heads=("rule", "worst regret", "silenced, clean", *heads),
        lines=tuple(lines),
    )


def treatment_board(tables: Sequence[Table], *, key: str, title: str) -> Board:
    """Return what attackers get and honest clients lose under each rule: means over cells, in percent."""
    columns: list[tuple[str, str, Callable[[Column], bool]]] = [
        ("attack weight", "malicious_weight", _attacked),
        ("silenced, clean", "honest_silenced", _clean),
        ("silenced, attack", "honest_silenced", _attacked),
        ("dropped, clean", "honest_dropped", _clean),
        ("dropped, attack", "honest_dropped", _attacked),
        ("data dropped, clean", "honest_data_dropped", _clean),
        ("trigger works", "attack_success", _attacked),
    ]
    lines = []
    for standing in standings(tables):
        values = [_mean(tables, standing.rule, measure, fits) for _, measure, fits in columns]
        lines.append((standing.label, *(DASH if value is None else f"{value:.1f}" for value in values)))
    return Board(
        key=key,
        title=title,
        caption="In percent, means over cells without (clean) and with an attack. Attack weight: what attackers have "
        "of all weight in a round. Silenced: honest clients that are dropped, or have less than a tenth of what FedAvg "
        "would give them among the honest ones. Data dropped: of what honest clients hold. Trigger works: success of "
        f"the backdoor. {DASH}: the rule has no weights.",
        heads=("rule", *(head for head, _, _ in columns)),
        lines=tuple(lines),
    )


def measure_boards(table: Table) -> Iterator[Board]:
    """Return the other figures of a table's cells, each as a table of the same rows and columns."""
    for measure, name in MEASURES.items():
        shown = [at for at in range(len(table.columns)) if any(_has(row, at, measure) for row in table.rows)]
        if not shown:
            continue
        lines = tuple((row.label, *(_measured(row, at, measure) for at in shown)) for row in table.rows)
        yield Board(
            key=f"{table.key}-{measure.replace('_', '-')}",
            title=f"{place_name(table)}: {name}",
            caption="In percent.",
            heads=("rule", *(column_name(table.columns[at]) for at in shown)),
            lines=lines,
        )


def standing_values(tables: Sequence[Table]) -> list[dict[str, object]]:
    """Return the standings as plain values."""
    return [
        {
            "rule": standing.rule,
            "label": standing.label,
            "worst_regret": standing.worst.points,
            "worst_in": standing.worst.place,
            "mean_regret": standing.mean_regret,
            "mean_accuracy": standing.mean_accuracy,
            "cells": len(standing.regrets),
            "of": standing.of,
            "refused": standing.refused,
        }
        for standing in standings(tables)
    ]


def _standing(standing: Standing) -> tuple[str, ...]:
    cells = str(len(standing.regrets)) if standing.whole else f"{len(standing.regrets)} of {standing.of}"
    if standing.refused:
        cells += f", {REFUSES} {standing.refused}"
    return (
        standing.label,
        f"{standing.worst.points:.1f}",
        standing.worst.place if standing.worst.points > 0 else DASH,
        f"{standing.mean_regret:.1f}",
        f"{standing.mean_accuracy:.1f}",
        cells,
    )


def _attacked(column: Column) -> bool:
    return column.attack != NO_ATTACK


def _clean(column: Column) -> bool:
    return column.attack == NO_ATTACK


def _accuracy(table: Table, rule: str, fits: Callable[[Column], bool]) -> str:
    means = [
        entry.mean
        for row in table.rows
        if row.rule == rule
        for column, entry in zip(table.columns, row.entries, strict=True)
        if entry is not None and entry.mean is not None and fits(column)
    ]
    return f"{statistics.fmean(means):.1f}" if means else DASH


def _percent(entry: Entry, measure: str) -> float | None:
    value = entry.measures.get(measure)
    return value if value is None or measure in _ALREADY_PERCENT else 100 * value


def _mean(tables: Sequence[Table], rule: str, measure: str, fits: Callable[[Column], bool]) -> float | None:
    values = [
        value
        for table in tables
        for row in table.rows
        if row.rule == rule
        for column, entry in zip(table.columns, row.entries, strict=True)
        if entry is not None and fits(column) and (value := _percent(entry, measure)) is not None
    ]
    return statistics.fmean(values) if values else None


def _has(row: Row, at: int, measure: str) -> bool:
    entry = row.entries[at]
    return entry is not None and measure in entry.measures


def _measured(row: Row, at: int, measure: str) -> str:
    entry = row.entries[at]
    if entry is None:
        return REFUSES if at in row.refusals else DASH
    value = _percent(entry, measure)
    return DASH if value is None else f"{value:.1f}"
