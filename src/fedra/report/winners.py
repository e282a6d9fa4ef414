"""Who wins in each column of the paper's comparisons, in print and here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fedra.experiments.paper import BEST_IGNORANT
from fedra.report.model import Column, Entry, Table
from fedra.report.rows import published_rules


@dataclass(frozen=True, kw_only=True)
class Winner:
    """One column that the paper has printed; rules are row labels, more than one where they tie.

    Attributes:
        table: key of the table.
        title: the table's.
        attack: printed name.
        alpha_q: the column's.
        published: who wins in the paper, of the rules that we have run.
        ours: who wins here, to two decimals.
        behind: points that the best published winner is behind our winner, in our runs; 0 where they agree.
    """

    table: str
    title: str
    attack: str
    alpha_q: float | None
    published: tuple[str, ...]
    ours: tuple[str, ...]
    behind: float

    @property
    def agrees(self) -> bool:
        """Whether a winner here is one in the paper."""
        return bool(set(self.published) & set(self.ours))


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """In how many columns of a table the winner is the published one."""

    table: str
    title: str
    same: int
    columns: int

    @property
    def share(self) -> float:
        """Between 0 and 1."""
        return self.same / self.columns


def winners(tables: Iterable[Table]) -> tuple[Winner, ...]:
    """Return the winners of each column in which at least two rules have a result and a published figure."""
    found = []
    for table in tables:
        if table.number is None or BEST_IGNORANT not in published_rules(table.number):
            continue
        for place, column in enumerate(table.columns):
            entries = {
                row.label: entry
                for row in table.rows
                if (entry := row.entries[place]) and entry.mean is not None and entry.published is not None
            }
            if len(entries) > 1:
                found.append(_winner(table, column, entries))
    return tuple(found)


def agreements(found: Sequence[Winner]) -> tuple[Agreement, ...]:
    """Return the share of agreement of each table."""
    tables = dict.fromkeys((winner.table, winner.title) for winner in found)
    return tuple(
        Agreement(table=key, title=title, same=sum(w.agrees for w in own), columns=len(own))
        for key, title in tables
        if (own := [winner for winner in found if winner.table == key])
    )


def _winner(table: Table, column: Column, entries: dict[str, Entry]) -> Winner:
    ours = {label: round(entry.mean, 2) for label, entry in entries.items() if entry.mean is not None}
    published = {label: entry.published for label, entry in entries.items() if entry.published is not None}
    most, printed_most = max(ours.values()), max(published.values())
    expected = tuple(label for label, value in published.items() if value == printed_most)
    return Winner(
        table=table.key,
        title=table.title,
        attack=column.attack_label,
        alpha_q=column.alpha_q,
        published=expected,
        ours=tuple(label for label, value in ours.items() if value == most),
        behind=round(most - max(ours[label] for label in expected), 2),
    )
