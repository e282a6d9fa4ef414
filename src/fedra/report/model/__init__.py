"""What a report shows, as values: tables of entries, apart from how they are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

DONE = "done"
# How a run that is not done can be, the worst first.
NOT_DONE = ("failed", "unfinished", "missing")
_DIGITS = 2


def leaders(values: Sequence[float | None]) -> tuple[bool, ...]:
    """Return which of the values are the highest, to two decimals; none where there is nothing to be better than."""
    known = [round(value, _DIGITS) for value in values if value is not None]
    if len(known) < 2:
        return (False,) * len(values)
    return tuple(value is not None and round(value, _DIGITS) == max(known) for value in values)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One place of a table, accuracies in percent.

    Attributes:
        mean: over the seeds that are done; None where none is.
        std: standard deviation over seeds (ddof=1); None for fewer than two.
        runs: the runs behind it, one for each seed.
        statuses: how each of these runs is: done, failed, unfinished or missing.
        published: the figure that somebody published for it, None where there is none.
        rule: the label of the rule that `mean` belongs to.
        by: what people call that rule, in a row that has the best of several rules; else empty.
        measures: means over the runs of other figures, by their names in the results; those that no run has are left
            out.
        accuracies: of each seed that is done.
    """

    mean: float | None
    std: float | None
    runs: tuple[str, ...]
    statuses: tuple[str, ...]
    published: float | None
    rule: str
    by: str = ""
    measures: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    accuracies: Mapping[int, float] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def difference(self) -> float | None:
        """Ours less the published figure, in points."""
        return None if self.mean is None or self.published is None else self.mean - self.published

    @property
    def num_done(self) -> int:
        """How many of its runs are done."""
        return self.statuses.count(DONE)

    @property
    def status(self) -> str:
        """Done where all runs are, else the worst that happened to one."""
        return next((status for status in NOT_DONE if status in self.statuses), DONE)

    @property
    def reason(self) -> str:
        """Why there is no mean."""
        return "not measured" if self.status == DONE else self.status


@dataclass(frozen=True, kw_only=True)
class Column:
    """An attack with a claimed quantity; `alpha_q` is None where nobody lies about quantities or no rule looks.

    `claims` says what is claimed where `alpha_q` is None.
    """

    attack: str
    alpha_q: float | None
    attack_label: str
    claims: str = "honest"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One rule, with an entry for each column (None: no such cell in the results).

    Attributes:
        label: for people.
        family: the rule's.
        rule: its label in the results.
        own: whether it is a rule of the user's own, not one of fedra's.
        entries: one for each column.
        refusals: why the rule cannot be run there, by the number of the column.
    """

    label: str
    family: str
    rule: str
    entries: tuple[Entry | None, ...]
    own: bool = False
    refusals: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def several(self) -> bool:
        """Whether it has the best of several rules, so that its entries say which."""
        return any(entry is not None and entry.by for entry in self.entries)


@dataclass(frozen=True, kw_only=True)
class Table:
    """One table: what was run on one data set, partition and setting.

    Attributes:
        key: file name and anchor, such as "table2-mnist".
        title: for people.
        group: what several tables have in common, at the beginning of their titles; empty where nothing.
        number: of the published table that it is like, None where there is none.
        caption: settings in a sentence: rounds, learning rate, cap, seeds.
    """

    key: str
    title: str
    group: str = ""
    number: int | None = None
    dataset: str
    partition: str
    setting: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

    @property
    def compared(self) -> bool:
        """Whether there is a published figure to compare with."""
        return any(entry is not None and entry.published is not None for row in self.rows for entry in row.entries)

    @cached_property
    def best(self) -> tuple[tuple[bool, ...], ...]:
        """For each row, in which columns it has the highest mean."""
        return self._leading("mean")

    @cached_property
    def best_published(self) -> tuple[tuple[bool, ...], ...]:
        """For each row, in which columns it has the highest published figure."""
        return self._leading("published")

    def _leading(self, figure: str) -> tuple[tuple[bool, ...], ...]:
        values = [[None if entry is None else getattr(entry, figure) for entry in row.entries] for row in self.rows]
        columns = [leaders([row[at] for row in values]) for at in range(len(self.columns))]
        return tuple(tuple(column[at] for column in columns) for at in range(len(self.rows)))


def table_values(table: Table) -> list[dict[str, Any]]:
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
            "mean": entry.mean,
            "std": entry.std,
            "runs": entry.runs,
            "published": entry.published,
            "rule": entry.rule,
            "difference": entry.difference,
        }
        for row in table.rows
        for column, entry in zip(table.columns, row.entries, strict=True)
        if entry is not None
    ]
