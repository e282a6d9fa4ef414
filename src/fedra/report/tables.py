"""The tables of a report: the paper's, ours beside the published figures, and one for each part of any other grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from types import MappingProxyType

from fedra.experiments import Results, read_paper
from fedra.experiments.paper import BEST_IGNORANT
from fedra.report.captions import caption, stand_in_note
from fedra.report.cells import NO_ATTACK, ReportCell, grouped, report_cells, unique
from fedra.report.model import Column, Table
from fedra.report.names import file_stem, printed, stands_for
from fedra.report.rows import (
    Part,
    best_row,
    columns_of,
    datasets_of,
    family_of,
    ignorant_rules,
    ordered_rules,
    paper_rules,
    published_in,
    published_rules,
    rows_of,
)
from fedra.rules import Family


def paper_tables(results: Results) -> tuple[Table, ...]:
    """Return the paper's tables as far as there are results, by number and data set, then those of its figures.

    All grids whose name begins with "paper" are pooled. A rule that the paper does not have is a row at the end.
    """
    cells = [cell for cell in report_cells(results) if cell.is_paper]
    attacked = [cell for cell in cells if cell.attacked and cell.rule not in _figure_rules()]
    tables: list[Table] = []
    for part, members in _parts(attacked).items():
        numbers = _numbers().get(part[1:], ())
        made = [_numbered(number, part, members) for number in numbers] if numbers else [_unnumbered(part, members)]
        tables += [table for table in made if table is not None]
    tables.sort(key=lambda table: (table.number is None, table.number or 0))
    return _with_distinct_keys([*tables, *_clean_tables(cells), *_estimation_tables(cells)])


def study_tables(results: Results) -> tuple[Table, ...]:
    """Return a table for each grid that is not the paper's, data set, partition and setting."""
    cells = [cell for cell in report_cells(results) if not cell.is_paper]
    tables = []
    for grid, members in grouped(cells, lambda cell: cell.grid).items():
        for part, own in _parts(members).items():
            dataset, partition, setting = part
            published = published_in(part)
            tables.append(
                Table(
                    key=file_stem(grid, *part),
                    title=f"{grid}: {printed(dataset)}, {printed(partition)}, {printed(setting)}",
                    number=None,
                    dataset=dataset,
                    partition=partition,
                    setting=setting,
                    caption=caption(own),
                    columns=(columns := columns_of(own)),
                    rows=rows_of(unique(cell.rule for cell in own), own, columns, published),
                )
            )
    return _with_distinct_keys(tables)


@cache
def _numbers() -> Mapping[tuple[str, str], tuple[int, ...]]:
    numbers: dict[tuple[str, str], list[int]] = {}
    for line in read_paper().accuracies:
        found = numbers.setdefault((line.partition, line.setting), [])
        if line.table not in found:
            found.append(line.table)
    return MappingProxyType({place: tuple(sorted(found)) for place, found in numbers.items()})


@cache
def _figure_rules() -> frozenset[str]:
    """Return the labels that the paper's figures give to variants of a rule; its tables have no such rows."""
    entries = [entry for figure in read_paper().figures for entry in figure.grid["rules"]]
    return frozenset(entry["label"] for entry in entries if not isinstance(entry, str))


def _parts(cells: Sequence[ReportCell]) -> dict[Part, list[ReportCell]]:
    groups = grouped(cells, lambda cell: (cell.dataset, cell.partition, cell.setting))
    datasets = datasets_of(cells)
    return {part: groups[part] for dataset in datasets for part in groups if part[0] == dataset}


def _numbered(number: int, part: Part, cells: Sequence[ReportCell]) -> Table | None:
    """Return a table of the paper; None where none of its rules was run, or only those that it seeks the best of."""
    dataset, partition, setting = part
    rules, published = published_rules(number), published_in(part)
    compared = BEST_IGNORANT in rules
    own = unique(cell.rule for cell in cells if cell.rule not in paper_rules())
    if not compared:
        own = [rule for rule in own if family_of(rule, cells) == Family.IGNORANT]
    if not any(cell.rule in (*rules, *own) for cell in cells):
        return None
    shown = [cell for cell in cells if compared or cell.rule in (*rules, *own)]
    columns = columns_of(shown) if compared else columns_of(shown, with_quantities=False)
    present = {cell.rule for cell in shown}
    rows = rows_of([rule for rule in rules if rule in present] + own, shown, columns, published)
    if compared and any(rule in present for rule in ignorant_rules()):
        rows = (best_row(shown, columns, published), *rows)
    what = f"{printed(partition)}, {printed(setting)}" + ("" if compared else ", quantity-ignorant rules")
    return Table(
        key=file_stem(f"table{number}", dataset),
        title=f"Table {number}: {printed(dataset)}, {what}",
        number=number,
        dataset=dataset,
        partition=partition,
        setting=setting,
        caption=_joined(caption(shown), stand_in_note(dataset)),
        columns=columns,
        rows=rows,
    )


def _unnumbered(part: Part, cells: Sequence[ReportCell]) -> Table:
    dataset, partition, setting = part
    columns = columns_of(cells)
    drawn = [figure.number for figure in read_paper().figures if setting in figure.grid.get("settings", ())]
    note = f"; its Figure {drawn[0]} draws a part of it" if drawn else ""
    return Table(
        key=file_stem(*part),
        title=f"{printed(dataset)}, {printed(partition)}, {printed(setting)}",
        number=None,
        dataset=dataset,
        partition=partition,
        setting=setting,
        caption=_joined(caption(cells), f"The paper prints no such table{note}."),
        columns=columns,
        rows=rows_of(ordered_rules(cells), cells, columns, published_in(part)),
    )


def _clean_tables(cells: Sequence[ReportCell]) -> list[Table]:
    """Return what Figure 1 draws: accuracy without attack."""
    clean = [cell for cell in cells if not cell.attacked]
    columns = (Column(attack=NO_ATTACK, alpha_q=None, attack_label=printed(NO_ATTACK)),)
    tables = []
    for (dataset, partition, setting), members in _parts(clean).items():
        tables.append(
            Table(
                key=file_stem("figure1", dataset, partition, setting),
                title=f"Figure 1: {printed(dataset)}, {printed(partition)}, {printed(setting)}, without attack",
                number=None,
                dataset=dataset,
                partition=partition,
                setting=setting,
                caption=_joined(caption(members), "The paper draws these and prints no figures."),
                columns=columns,
                rows=rows_of(ordered_rules(members), members, columns, lambda *_: None),
            )
        )
    return tables


def _estimation_tables(cells: Sequence[ReportCell]) -> list[Table]:
    """Return what Figures 4 and 5 draw: MCNE against a fixed number that is too low or too high."""
    rules = estimation_rules()
    tables = []
    for (dataset, partition, setting), members in _parts([cell for cell in cells if cell.attacked]).items():
        shown = [cell for cell in members if cell.rule in rules]
        if not any(cell.rule in rules[1:] for cell in shown):
            continue
        number = estimation_figure(dataset)
        columns = columns_of(shown)
        tables.append(
            Table(
                key=file_stem(f"figure{number}", dataset),
                title=f"Figure {number}: {printed(dataset)}, MCNE against under- and over-estimation",
                number=None,
                dataset=dataset,
                partition=partition,
                setting=setting,
                caption=_joined(caption(shown), "The paper draws these and prints no figures."),
                columns=columns,
                rows=rows_of([rule for rule in rules if any(cell.rule == rule for cell in shown)], shown, columns),
            )
        )
    return list(_with_distinct_keys(tables))


@cache
def estimation_rules() -> tuple[str, ...]:
    """Return the labels that Figures 4 and 5 compare: FedRA with MCNE first."""
    return figure_rules(5)


@cache
def figure_rules(number: int) -> tuple[str, ...]:
    """Return the labels of the rules that one of the paper's figures shows."""
    figure = next(figure for figure in read_paper().figures if figure.number == number)
    return tuple(entry if isinstance(entry, str) else entry["label"] for entry in figure.grid["rules"])


def estimation_figure(dataset: str) -> int:
    """Return the figure that has this data set, or the one it stands for."""
    figures = {figure.number: figure for figure in read_paper().figures}
    return 5 if stands_for(dataset) in figures[5].grid["datasets"] else 4


def _joined(*sentences: str) -> str:
    return " ".join(sentence for sentence in sentences if sentence)


def _with_distinct_keys(tables: Sequence[Table]) -> tuple[Table, ...]:
    taken: dict[str, int] = {}
    distinct = []
    for table in tables:
        taken[table.key] = taken.get(table.key, 0) + 1
        again = taken[table.key] > 1
        distinct.append(replace(table, key=f"{table.key}-{taken[table.key]}") if again else table)
    return tuple(distinct)
