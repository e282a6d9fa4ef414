"""The paper's tables, ours beside the published figures, and tables of what its figures draw."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import Any

from fedra.paper.matching import labelled_figure, paper_grids
from fedra.paper.protocols import read_protocols
from fedra.paper.published import BEST_IGNORANT, read_paper
from fedra.report.appearance import DISPLAY_NAMES, Names, display_name
from fedra.report.model import Column, Entry, Row, Table
from fedra.report.model.comparison import (
    Part,
    caption,
    columns_of,
    family_of,
    file_stem,
    part_of,
    rows_of,
    with_distinct_keys,
)
from fedra.report.model.outcomes import NO_ATTACK, OWN, Outcome, ReportData, grouped, in_order, unique
from fedra.rules import Family

# As the paper calls things, but for those that it has no name for or writes in another way than their makers.
PAPER_NAMES: Names = MappingProxyType(
    {
        **DISPLAY_NAMES,
        **read_paper().names,
        "cifar10": DISPLAY_NAMES["cifar10"],
        "fedra, mcne": "FedRA with MCNE",
        "fedra, under-estimated": "FedRA, under-estimated",
        "fedra, over-estimated": "FedRA, over-estimated",
    }
)


def paper_outcomes(data: ReportData) -> list[Outcome]:
    """Return the outcomes that belong to the paper's tables and figures, of all grids that are the paper's."""
    grids = paper_grids(data.outcomes)
    return [outcome for outcome in data.outcomes if outcome.grid in grids]


def paper_tables(data: ReportData) -> tuple[Table, ...]:
    """Return the paper's tables as far as there are results, by number and data set, then those of its figures.

    All grids that are the paper's are pooled. A rule that the paper does not have is a row at the end.
    """
    outcomes = paper_outcomes(data)
    attacked = [outcome for outcome in outcomes if outcome.attacked and outcome.rule not in _figure_rules()]
    tables: list[Table] = []
    for part, members in _parts(attacked).items():
        numbers = _numbers().get(part[1:], ())
        made = [_numbered(number, part, members) for number in numbers] if numbers else [_unnumbered(part, members)]
        tables += [table for table in made if table is not None]
    tables.sort(key=lambda table: (table.number is None, table.number or 0))
    return with_distinct_keys([*tables, *_clean_tables(outcomes), *_estimation_tables(outcomes)])


def paper_name(label: str) -> str:
    """Return what the paper calls something."""
    return display_name(label, PAPER_NAMES)


def paper_datasets(outcomes: Iterable[Outcome]) -> list[str]:
    """Return the data sets of the outcomes, the paper's first."""
    return in_order((outcome.dataset for outcome in outcomes), list(read_paper().names))


def stands_for(dataset: str) -> str:
    """Return the data set of the paper in whose place this one is; most are in their own."""
    return read_protocols().stands_for.get(dataset, dataset)


def ordered_rules(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the rules of the outcomes by family, and within it as the paper has them."""
    named = in_order((outcome.rule for outcome in outcomes), list(read_paper().names))
    families = (str(Family.IGNORANT), str(Family.AWARE), str(Family.ROBUST), OWN)
    return sorted(named, key=lambda rule: families.index(family_of(rule, outcomes)))


@cache
def estimation_rules() -> tuple[str, ...]:
    """Return the labels that Figures 4 and 5 compare: FedRA with MCNE first."""
    return figure_rules(5)


@cache
def figure_rules(number: int) -> tuple[str, ...]:
    """Return the labels of the rules that one of the paper's figures shows."""
    entries = read_paper().figure(number).grid["rules"]
    return tuple(entry if isinstance(entry, str) else entry["label"] for entry in entries)


@cache
def table_labels() -> frozenset[str]:
    """Return the rules of the paper's tables."""
    return frozenset(line.rule for line in read_paper().accuracies)


@cache
def _published_rules(number: int) -> tuple[str, ...]:
    """Return the rules that a table of the paper has, in its order."""
    return tuple(unique(line.rule for line in read_paper().accuracies if line.table == number))


@cache
def _ignorant_rules() -> tuple[str, ...]:
    """Return the rules among which the paper seeks its best quantity-ignorant one."""
    others = [line.rule for line in read_paper().accuracies if line.table not in read_paper().comparisons]
    return tuple(unique(others))


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


def _parts(outcomes: Sequence[Outcome]) -> dict[Part, list[Outcome]]:
    groups = grouped(outcomes, part_of)
    return {part: groups[part] for dataset in paper_datasets(outcomes) for part in groups if part[0] == dataset}


def _columns(outcomes: Sequence[Outcome], *, with_quantities: bool = True) -> tuple[Column, ...]:
    """Return the columns in the paper's order, quantities ascending."""
    columns = columns_of(outcomes, PAPER_NAMES)
    if not with_quantities:
        columns = tuple(unique(replace(column, alpha_q=None) for column in columns))
    attacks = in_order((column.attack for column in columns), list(read_paper().names))
    return tuple(sorted(columns, key=lambda c: (attacks.index(c.attack), c.alpha_q is not None, c.alpha_q or 0.0)))


def _numbered(number: int, part: Part, outcomes: Sequence[Outcome]) -> Table | None:
    """Return a table of the paper; None where none of its rules was run, or only those that it seeks the best of."""
    rules = _published_rules(number)
    compared = number in read_paper().comparisons
    added = unique(outcome.rule for outcome in outcomes if outcome.rule not in table_labels())
    if not compared:
        added = [rule for rule in added if family_of(rule, outcomes) == Family.IGNORANT]
    if not any(outcome.rule in (*rules, *added) for outcome in outcomes):
        return None
    members = [outcome for outcome in outcomes if compared or outcome.rule in (*rules, *added)]
    columns = _columns(members, with_quantities=compared)
    present = {outcome.rule for outcome in members}
    wanted = [*(rule for rule in rules if rule in present), *added]
    rows = rows_of(wanted, members, columns, labelled_figure, PAPER_NAMES)
    if compared and any(rule in present for rule in _ignorant_rules()):
        rows = (_best_row(part, members, columns), *rows)
    what = "" if compared else ", quantity-ignorant rules"
    return _table(
        part,
        key=file_stem(f"table{number}", part[0]),
        group=f"Table {number}",
        number=number,
        title=f"Table {number}: {_where(part)}{what}",
        caption=f"{caption(members, PAPER_NAMES)}{_stand_in_note(part[0])}",
        columns=columns,
        rows=rows,
    )


def _unnumbered(part: Part, outcomes: Sequence[Outcome]) -> Table:
    columns = _columns(outcomes)
    drawn = [figure.number for figure in read_paper().figures if part[2] in figure.grid.get("settings", ())]
    note = f"; its Figure {drawn[0]} draws a part of it" if drawn else ""
    return _table(
        part,
        key=file_stem(*part),
        title=_where(part),
        caption=f"{caption(outcomes, PAPER_NAMES)} The paper prints no such table{note}.",
        columns=columns,
        rows=rows_of(ordered_rules(outcomes), outcomes, columns, labelled_figure, PAPER_NAMES),
    )


def _clean_tables(outcomes: Sequence[Outcome]) -> list[Table]:
    """Return what Figure 1 draws: accuracy without attack."""
    clean = [outcome for outcome in outcomes if not outcome.attacked]
    columns = (Column(attack=NO_ATTACK, alpha_q=None, attack_label=paper_name(NO_ATTACK)),)
    return [
        _table(
            part,
            key=file_stem("figure1", *part),
            group="Figure 1",
            title=f"Figure 1: {_where(part)}, without attack",
            caption=f"{caption(members, PAPER_NAMES)} The paper draws these and prints no figures.",
            columns=columns,
            rows=rows_of(ordered_rules(members), members, columns, names=PAPER_NAMES),
        )
        for part, members in _parts(clean).items()
    ]


def _estimation_tables(outcomes: Sequence[Outcome]) -> tuple[Table, ...]:
    """Return what Figures 4 and 5 draw: MCNE against a fixed number that is too low or too high."""
    rules = estimation_rules()
    tables = []
    for part, found in _parts([outcome for outcome in outcomes if outcome.attacked]).items():
        members = [outcome for outcome in found if outcome.rule in rules]
        if not any(outcome.rule in rules[1:] for outcome in members):
            continue
        number = 5 if stands_for(part[0]) in read_paper().figure(5).grid["datasets"] else 4
        columns = _columns(members)
        present = [rule for rule in rules if any(outcome.rule == rule for outcome in members)]
        tables.append(
            _table(
                part,
                key=file_stem(f"figure{number}", part[0]),
                group=f"Figure {number}",
                title=f"Figure {number}: {paper_name(part[0])}, MCNE against under- and over-estimation",
                caption=f"{caption(members, PAPER_NAMES)} The paper draws these and prints no figures.",
                columns=columns,
                rows=rows_of(present, members, columns, names=PAPER_NAMES),
            )
        )
    return with_distinct_keys(tables)


def _table(part: Part, **values: Any) -> Table:
    return Table(dataset=part[0], partition=part[1], setting=part[2], **values)


def _best_row(part: Part, outcomes: Sequence[Outcome], columns: Sequence[Column]) -> Row:
    """Return the best of the quantity-ignorant rules in each column."""
    present = {outcome.rule for outcome in outcomes}
    rows = rows_of([rule for rule in _ignorant_rules() if rule in present], outcomes, columns)
    entries: list[Entry | None] = []
    for place, column in enumerate(columns):
        found = [entry for row in rows if (entry := row.entries[place]) is not None]
        # max keeps the first of equals, so that ties go to the rule that the paper lists first.
        best = max(found, key=lambda entry: -1.0 if entry.mean is None else entry.mean, default=None)
        published = read_paper().by_place.get((*part, BEST_IGNORANT, column.attack, column.alpha_q))
        entries.append(best and replace(best, published=published, by=paper_name(best.rule)))
    return Row(label=paper_name(BEST_IGNORANT), family=str(Family.IGNORANT), rule=BEST_IGNORANT, entries=tuple(entries))


def _where(part: Part) -> str:
    return ", ".join(map(paper_name, part))


def _stand_in_note(dataset: str) -> str:
    """Return why a table of this data set has no published figures; empty where it may have some."""
    place = read_protocols().stands_for.get(dataset)
    if any(line.dataset == dataset for line in read_paper().accuracies):
        return ""
    if place is None:
        return f" The paper has no {paper_name(dataset)}."
    return (
        f" The paper has {paper_name(place)} in the place of {paper_name(dataset)}, so there are no published figures."
    )
