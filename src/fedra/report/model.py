"""What a report shows, as values: tables of entries, apart from how they are drawn."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One place of a table, accuracies in percent.

    Attributes:
        mean: over the seeds that are done; None where none is.
        std: standard deviation over seeds (ddof=1); None for fewer than two.
        runs: the runs behind it, one for each seed.
        published: the paper's figure, None where it has none.
        rule: the rule that `mean` belongs to, which in a row "best of several" changes from entry to entry.
    """

    mean: float | None
    std: float | None
    runs: tuple[str, ...]
    published: float | None
    rule: str

    @property
    def difference(self) -> float | None:
        """Ours less the published figure, in points."""
        return None if self.mean is None or self.published is None else self.mean - self.published


@dataclass(frozen=True, kw_only=True)
class Column:
    """An attack with a claimed quantity; `alpha_q` is None where nobody lies about quantities or no rule looks."""

    attack: str
    alpha_q: float | None
    attack_label: str


@dataclass(frozen=True, kw_only=True)
class Row:
    """One rule, with an entry for each column (None: no such cell in the results)."""

    label: str
    family: str
    entries: tuple[Entry | None, ...]


@dataclass(frozen=True, kw_only=True)
class Table:
    """One table: what was run on one data set, partition and setting.

    Attributes:
        key: file name and anchor, such as "table2-mnist".
        title: for people.
        number: the paper's table, None where it has none like it.
        caption: protocol in a sentence: rounds, learning rate, cap, seeds.
    """

    key: str
    title: str
    number: int | None
    dataset: str
    partition: str
    setting: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
