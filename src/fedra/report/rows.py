"""Rows and columns of a table, from cells and from what the paper printed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache

from fedra.experiments import read_paper
from fedra.experiments.paper import BEST_IGNORANT
from fedra.report.cells import OWN, ReportCell, entry_of, grouped, in_order, unique
from fedra.report.model import Column, Entry, Row
from fedra.report.names import printed
from fedra.rules import Family

# Data set, partition and setting: what the cells of one table have in common.
Part = tuple[str, str, str]
Published = Callable[[str, str, float | None], float | None]

BEST_LABEL = printed(BEST_IGNORANT)


@cache
def published_rules(number: int) -> tuple[str, ...]:
    """Return the rules that a table of the paper has, in its order."""
    return tuple(unique(line.rule for line in read_paper().accuracies if line.table == number))


@cache
def paper_rules() -> frozenset[str]:
    """Return all rules of the paper's tables."""
    return frozenset(line.rule for line in read_paper().accuracies)


@cache
def ignorant_rules() -> tuple[str, ...]:
    """Return the rules among which the paper seeks its best quantity-ignorant one."""
    compared = {number for number in range(2, 8) if BEST_IGNORANT in published_rules(number)}
    return tuple(unique(rule for number in range(2, 8) if number not in compared for rule in published_rules(number)))


def published_in(part: Part) -> Published:
    """Return a look-up of what the paper printed for a rule, an attack and alpha_q, on this data set."""
    lines = [line for line in read_paper().accuracies if (line.dataset, line.partition, line.setting) == part]
    known = {(line.rule, line.attack, line.alpha_q): line.accuracy for line in lines}

    def find(rule: str, attack: str, alpha_q: float | None) -> float | None:
        # Rules that ignore quantities were printed without alpha_q.
        return known.get((rule, attack, alpha_q), known.get((rule, attack, None)))

    return find


def columns_of(cells: Sequence[ReportCell], *, with_quantities: bool = True) -> tuple[Column, ...]:
    """Return the attacks of the cells, each with its claimed quantities where any clients lie."""
    columns = []
    for attack in in_order((cell.attack for cell in cells), list(read_paper().names)):
        members = [cell for cell in cells if cell.attack == attack]
        lies = with_quantities and any(cell.attacked for cell in members)
        quantities = {cell.alpha_q for cell in members} if lies else {None}
        ascending = sorted(quantities, key=lambda value: (value is not None, value or 0.0))
        columns += [Column(attack=attack, alpha_q=alpha_q, attack_label=printed(attack)) for alpha_q in ascending]
    return tuple(columns)


def rows_of(
    rules: Iterable[str], cells: Sequence[ReportCell], columns: Sequence[Column], published: Published | None = None
) -> tuple[Row, ...]:
    """Return a row for each rule."""
    by_place = grouped(cells, lambda cell: (cell.rule, cell.attack, cell.alpha_q))
    by_attack = grouped(cells, lambda cell: (cell.rule, cell.attack))
    whole = {column.attack for column in columns if sum(other.attack == column.attack for other in columns) == 1}

    def entry(rule: str, column: Column) -> Entry | None:
        pooled = column.alpha_q is None and column.attack in whole
        place = (rule, column.attack, column.alpha_q)
        found = by_attack.get(place[:2], []) if pooled else by_place.get(place, [])
        return entry_of(found, published(rule, column.attack, column.alpha_q) if published else None)

    return tuple(
        Row(
            label=printed(rule), family=family_of(rule, cells), entries=tuple(entry(rule, column) for column in columns)
        )
        for rule in rules
    )


def best_row(cells: Sequence[ReportCell], columns: Sequence[Column], published: Published) -> Row:
    """Return the best of the quantity-ignorant rules in each column."""
    present = {cell.rule for cell in cells}
    rows = rows_of([rule for rule in ignorant_rules() if rule in present], cells, columns)
    entries: list[Entry | None] = []
    for place, column in enumerate(columns):
        found = [entry for row in rows if (entry := row.entries[place]) is not None]
        # max keeps the first of equals, so that ties go to the rule that the paper lists first.
        best = max(found, key=lambda entry: -1.0 if entry.mean is None else entry.mean, default=None)
        printed_best = published(BEST_IGNORANT, column.attack, column.alpha_q)
        entries.append(best and replace(best, published=printed_best))
    return Row(label=BEST_LABEL, family=str(Family.IGNORANT), entries=tuple(entries))


def datasets_of(cells: Iterable[ReportCell]) -> list[str]:
    """Return the data sets of the cells, the paper's first."""
    return in_order((cell.dataset for cell in cells), list(read_paper().names))


def ordered_rules(cells: Sequence[ReportCell]) -> list[str]:
    """Return the rules of the cells by family, and within it as the paper has them."""
    named = in_order((cell.rule for cell in cells), list(read_paper().names))
    families = (str(Family.IGNORANT), str(Family.AWARE), str(Family.ROBUST), OWN)
    return sorted(named, key=lambda rule: families.index(family_of(rule, cells)))


def family_of(rule: str, cells: Sequence[ReportCell]) -> str:
    """Return the family of a rule."""
    families = {cell.family for cell in cells if cell.rule == rule}
    return str(Family.IGNORANT) if Family.IGNORANT in families else sorted(families)[0]
