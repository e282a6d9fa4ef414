"""Who is how far behind the best: regret in each cell, and each rule's mean and worst of it."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fedra.report.model import Column, Entry, Table
from fedra.report.model.outcomes import UNKNOWN_SEED


@dataclass(frozen=True, kw_only=True)
class Regret:
    """One rule in one cell: its accuracy, and by how many points the best rule of the cell is better.

    Both are means over the seeds that the rules of the cell share, see `shared_accuracies`.
    """

    table: Table
    column: Column
    accuracy: float
    points: float

    @property
    def place(self) -> str:
        """The cell for people, with the setting."""
        return f"{place_name(self.table)}: {column_name(self.column)}"


@dataclass(frozen=True, kw_only=True)
class Standing:
    """A rule over several cells.

    Attributes:
        rule: its label in the results.
        label: what people call it.
        own: whether it is a rule of the user's own.
        regrets: one for each cell in which it has a result and another rule has one.
        of: how many such cells there are.
        refused: how many of them it cannot be run in.
    """

    rule: str
    label: str
    own: bool
    regrets: tuple[Regret, ...]
    of: int
    refused: int

    @property
    def worst(self) -> Regret:
        """Where it is furthest behind; of several that tie, the first."""
        return max(self.regrets, key=lambda regret: regret.points)

    @property
    def mean_regret(self) -> float:
        """Over its cells."""
        return statistics.fmean(regret.points for regret in self.regrets)

    @property
    def mean_accuracy(self) -> float:
        """Over its cells."""
        return statistics.fmean(regret.accuracy for regret in self.regrets)

    @property
    def whole(self) -> bool:
        """Whether it has a result in every cell."""
        return len(self.regrets) == self.of


def standings(tables: Sequence[Table]) -> tuple[Standing, ...]:
    """Return the rules of some tables by their worst regret, least first; those without a result in some cell last."""
    regrets: dict[str, list[Regret]] = {}
    refused: dict[str, int] = {}
    rows = {row.rule: row for table in tables for row in table.rows}
    cells = 0
    for table in tables:
        for at, column in enumerate(table.columns):
            means = shared_accuracies({row.rule: row.entries[at] for row in table.rows})
            if len(means) < 2:
                continue
            cells += 1
            best = max(means.values())
            for rule, mean in means.items():
                regret = Regret(table=table, column=column, accuracy=mean, points=best - mean)
                regrets.setdefault(rule, []).append(regret)
            for row in table.rows:
                refused[row.rule] = refused.get(row.rule, 0) + (at in row.refusals)
    found = [
        Standing(
            rule=rule,
            label=rows[rule].label,
            own=rows[rule].own,
            regrets=tuple(regrets[rule]),
            of=cells,
            refused=refused[rule],
        )
        for rule in rows
        if rule in regrets
    ]
    return tuple(sorted(found, key=lambda standing: (not standing.whole, standing.worst.points)))


def shared_accuracies(entries: Mapping[str, Entry | None]) -> dict[str, float]:
    """Return the mean accuracy of each rule over the same seeds: those that the largest number of rules share.

    A rule that lacks one of them has no part in the comparison: seeds differ by more than rules often do.
    """
    known = {rule: _by_seed(entry) for rule, entry in entries.items() if entry is not None and entry.mean is not None}
    sharing: dict[int, frozenset[str]] = {
        seed: frozenset(rule for rule, found in known.items() if seed in found)
        for seed in sorted({seed for found in known.values() for seed in found})
    }
    if not sharing:
        return {}
    most = max(sharing.values(), key=len)
    seeds = [seed for seed, rules in sharing.items() if rules >= most]
    return {rule: statistics.fmean(known[rule][seed] for seed in seeds) for rule in known if rule in most}


def _by_seed(entry: Entry) -> Mapping[int, float]:
    """Return the accuracy of each seed; an entry that says nothing of seeds has one."""
    return entry.accuracies or {UNKNOWN_SEED: float(entry.mean or 0.0)}


def place_name(table: Table) -> str:
    """Return the setting of a table for people."""
    return table.title.removeprefix(f"{table.group}: ")


def column_name(column: Column) -> str:
    """Return an attack with its claimed quantity for people."""
    quantity = "" if column.alpha_q is None else f", alpha_q {column.alpha_q:g}"
    return f"{column.attack_label}{quantity}"
