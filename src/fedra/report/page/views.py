"""What the templates of the page show, as values: no markup here, and no figures made there."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any
from urllib.parse import quote

from fedra.experiments.cell_table import STATES
from fedra.report.formats.markdown import DASH, signed
from fedra.report.model import DONE, Column, Entry, Row, Table
from fedra.report.model.comparison import learning_rate, part_of
from fedra.report.model.outcomes import UNKNOWN_SEED, Outcome, ReportData, grouped, unique
from fedra.report.reference import TextTable

_FEW_COLUMNS = 2
# Points of difference from which on a colour is one step stronger.
_STEPS = (0.5, 2.0, 5.0, 15.0)
_PARTS_HEAD = ("data set", "partition", "setting", "rounds", "learning rate", "cap", "seeds", "runs done")


@dataclass(frozen=True, kw_only=True)
class CellView:
    """An entry as a button; texts are empty where there is nothing to say."""

    at: str
    link: str
    marks: str
    description: str
    mean: str
    std: str
    part: str
    status: str
    reason: str
    failed: bool
    compared: bool
    published: str
    difference: str
    by: str


@dataclass(frozen=True, kw_only=True)
class RowView:
    """A row with its cells, None where nothing was to be run, and why the rule refuses where it does."""

    label: str
    family: str
    looks: str
    cells: tuple[CellView | None, ...]
    refusals: Mapping[int, str]


@dataclass(frozen=True, kw_only=True)
class TableView:
    """A table: its columns by attack, flat where no attack has quantities, and its rows."""

    table: Table
    groups: tuple[tuple[str, tuple[Column, ...]], ...]
    flat: bool
    slim: bool
    rows: tuple[RowView, ...]


@dataclass(frozen=True, kw_only=True)
class Tile:
    """A figure with what it is; `kind` gives it its looks."""

    figure: str
    text: str
    kind: str = ""


@dataclass(frozen=True, kw_only=True)
class Overview:
    """What was run: counts, a line for each data set, partition and setting, and what failed."""

    tiles: tuple[Tile, ...]
    parts: TextTable
    failures: TextTable | None


@dataclass(frozen=True, kw_only=True)
class Link:
    """A table to go to."""

    key: str
    title: str
    text: str


@dataclass(frozen=True, kw_only=True)
class ContentsLine:
    """The tables of one group, and what they have in common."""

    name: str
    links: tuple[Link, ...]
    shared: str


def table_view(table: Table, number: int) -> TableView:
    """Return a table, which is that of this number in the page's data."""
    groups = tuple(
        (label, tuple(group)) for label, group in groupby(table.columns, key=lambda column: column.attack_label)
    )
    rows = []
    for at, row in enumerate(table.rows):
        parted = at > 0 and row.family != table.rows[at - 1].family
        cells = tuple(
            None if entry is None else _cell(table, entry, number, at, place) for place, entry in enumerate(row.entries)
        )
        looks = " ".join(filter(None, ["parted" if parted else "", "own" if row.own else ""]))
        rows.append(RowView(label=row.label, family=row.family, looks=looks, cells=cells, refusals=row.refusals))
    return TableView(
        table=table,
        groups=groups,
        flat=all(len(columns) == 1 and columns[0].alpha_q is None for _, columns in groups),
        slim=len(table.columns) <= _FEW_COLUMNS,
        rows=tuple(rows),
    )


def cell_link(table: Table, row: Row, column: Column) -> str:
    """Return what names an entry in the page's address, after `#cell=`."""
    alpha_q = "" if column.alpha_q is None else f"{column.alpha_q:g}"
    return "~".join(
        quote(part, safe="", errors="replace") for part in (table.key, row.label, column.attack_label, alpha_q)
    )


def difference_text(value: float) -> str:
    """Return a difference with its sign, as typographers set it."""
    text = signed(value)
    return "±0.00" if text[1:] == "0.00" else text


def contents(tables: Sequence[Table], data: ReportData) -> list[ContentsLine]:
    """Return a line for each group of tables, with a link to each by what tells it from the others."""
    return [_contents_line(name, list(group), data) for name, group in _by_group(tables).items()]


def overview(data: ReportData) -> Overview:
    """Return counts of runs by how they ended, and a line for each data set, partition and setting."""
    runs = [data.runs[name] for name in unique(outcome.run for outcome in data.outcomes)]
    seeds = {outcome.seed for outcome in data.outcomes if outcome.seed != UNKNOWN_SEED}
    # Several calls that name the same cell have it in a grid each.
    cells = {(each.run, each.dataset, each.rule, each.attack, each.alpha_q) for each in data.outcomes}
    tiles = [Tile(figure=f"{len(cells):,}", text="cells")]
    tiles += [
        Tile(figure=f"{data.counts.get(status, 0):,}", text=f"runs {status}", kind=status)
        for status in STATES
        if status == DONE or data.counts.get(status, 0)
    ]
    tiles.append(Tile(figure=str(len(seeds)), text="seed" if len(seeds) == 1 else "seeds"))
    first = {dataset: at for at, dataset in enumerate(unique(outcome.dataset for outcome in runs))}
    parts = sorted(grouped(runs, part_of).items(), key=lambda item: (first[item[0][0]], *item[0][1:]))
    lines = [[*map(data.name, part), *_settings(members), *_progress(members)] for part, members in parts]
    failed = [[run.run, run.error or "no error was recorded"] for run in runs if run.status == "failed"]
    return Overview(
        tiles=tuple(tiles),
        parts=TextTable(label="What was run", heads=_PARTS_HEAD, lines=lines, numbers=frozenset(range(3, 8))),
        failures=TextTable(
            label="Failed runs", heads=("run", "error"), lines=failed, heading=f"{len(failed)} failed", folded=True
        )
        if failed
        else None,
    )


def _cell(table: Table, entry: Entry, number: int, at: int, place: int) -> CellView:
    row, column = table.rows[at], table.columns[place]
    return CellView(
        at=f"{number},{at},{place}",
        link=cell_link(table, row, column),
        marks=_marks(entry, table.best[at][place], table.best_published[at][place]),
        description=_description(row, column, entry),
        mean="" if entry.mean is None else f"{entry.mean:.2f}",
        std="" if entry.std is None else f"{entry.std:.2f}",
        part="" if entry.num_done == len(entry.runs) else f"{entry.num_done}/{len(entry.runs)}",
        status=entry.status,
        reason=entry.reason,
        failed=entry.status == "failed",
        compared=table.compared,
        published=DASH if entry.published is None else f"{entry.published:.2f}",
        difference=DASH if entry.difference is None else difference_text(entry.difference),
        by=entry.by,
    )


def _marks(entry: Entry, best: bool, best_published: bool) -> str:
    marks = [name for name, is_so in (("best", best), ("best-published", best_published)) if is_so]
    if (difference := entry.difference) is not None:
        step = bisect_right(_STEPS, round(abs(difference), 2))
        marks.append(f"{'up' if difference > 0 else 'down'}{step}" if step else "even")
    return " ".join(marks)


def _description(row: Row, column: Column, entry: Entry) -> str:
    quantity = "" if column.alpha_q is None else f", alpha q {column.alpha_q:g}"
    ours = "no result" if entry.mean is None else f"ours {entry.mean:.2f}"
    if entry.std is not None:
        ours += f" plus or minus {entry.std:.2f}"
    if entry.published is not None:
        ours += f", published {entry.published:.2f}"
    if entry.difference is not None:
        ours += f", difference {entry.difference:+.2f}"
    return f"{row.label}, {column.attack_label}{quantity}: {ours}"


def _by_group(tables: Iterable[Table]) -> dict[str, list[Table]]:
    lines: dict[str, list[Table]] = {}
    for table in tables:
        lines.setdefault(table.group, []).append(table)
    return lines


def _contents_line(name: str, group: Sequence[Table], data: ReportData) -> ContentsLine:
    places = [_place(table, data) for table in group]
    kept = [at for at in range(len(places[0])) if at == 0 or len({place[at] for place in places}) > 1]
    shared = [part for at, part in enumerate(places[0]) if at not in kept]
    links = tuple(
        Link(key=table.key, title=table.title, text=", ".join(filter(None, (place[at] for at in kept))))
        for table, place in zip(group, places, strict=True)
    )
    return ContentsLine(name=name, links=links, shared=", ".join(filter(None, shared)))


def _place(table: Table, data: ReportData) -> tuple[str, str, str, str]:
    """Return data set, partition, setting, and what else the title says."""
    where = (data.name(table.dataset), data.name(table.partition), data.name(table.setting))
    rest = table.title.removeprefix(f"{table.group}: ").split(", ")
    return (*where, ", ".join(part for part in rest if part not in where))


def _settings(runs: Sequence[Outcome]) -> list[str]:
    configs: list[Mapping[str, Any]] = [run.config for run in runs]
    rates = {learning_rate(config) for config in configs}
    caps = {config.get("max_quantity") for config in configs}
    return [_listed({config.get("rounds") for config in configs}), _listed(rates), _listed(caps)]


def _progress(runs: Sequence[Outcome]) -> list[str]:
    done = sum(run.status == DONE for run in runs)
    return [_ranges(run.seed for run in runs if run.seed != UNKNOWN_SEED), f"{done} of {len(runs)}"]


def _listed(values: set[Any]) -> str:
    known = [f"{value:g}" for value in sorted(value for value in values if value is not None)]
    return ", ".join([*known, *(["none"] if None in values else [])])


def _ranges(values: Iterable[int]) -> str:
    """Return whole numbers as they are listed, a stretch of three or more as first to last."""
    numbers = sorted(set(values))
    if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(f"{number:,}" for number in numbers) or DASH
