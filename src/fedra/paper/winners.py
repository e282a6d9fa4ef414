"""Who wins in each column of the paper's comparisons, in print and here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fedra.paper.published import read_paper
from fedra.report.formats.csv import lines_csv, number
from fedra.report.formats.markdown import DASH, escaped, lines_markdown
from fedra.report.model import Column, Entry, Table, leaders
from fedra.report.reference import Section, TextTable

_HEADS = ("attack", "alpha_q", "best in the paper", "best here", "", "points behind")


@dataclass(frozen=True, kw_only=True)
class Winner:
    """One column that the paper has; rules are row labels, more than one where they tie.

    Attributes:
        table: key of the table.
        title: the table's.
        attack: what people call it.
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
        if table.number not in read_paper().comparisons:
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
        Agreement(table=key, title=title, same=sum(w.agrees for w in members), columns=len(members))
        for key, title in tables
        if (members := [winner for winner in found if winner.table == key])
    )


def winners_section(found: Sequence[Winner]) -> Section:
    """Return who wins as a part of the report; a table in which all agree is folded away."""
    tables = []
    for share in agreements(found):
        lines = [_line(winner) for winner in found if winner.table == share.table]
        heading = f"{share.same} of {share.columns} the same in {share.title}"
        label, folded = f"Winners, {share.title}", share.same == share.columns
        tables.append(
            TextTable(label=label, heads=_HEADS, lines=lines, numbers=frozenset({1, 5}), heading=heading, folded=folded)
        )
    return Section(
        key="winners",
        title="Who wins",
        caption="In which columns the rule that is best in the paper is best here too; where it is not, how far it is "
        "behind here.",
        tables=tuple(tables),
        markdown=winners_markdown(found),
    )


def winners_markdown(found: Sequence[Winner]) -> str:
    """Return the winner of each column in the paper and here, and the share of agreement."""
    heads = ["table", "columns", "same winner", "share"]
    shares = [[escaped(a.title), str(a.columns), str(a.same), f"{a.share:.0%}"] for a in agreements(found)]
    each = ["table", "attack", "alpha\\_q", "winner in the paper", "winner here", "the paper's is behind by"]
    body = [
        [
            escaped(winner.title),
            escaped(winner.attack),
            DASH if winner.alpha_q is None else f"{winner.alpha_q:g}",
            escaped(", ".join(winner.published)),
            escaped(", ".join(winner.ours)),
            "same" if winner.agrees else f"{winner.behind:.2f}",
        ]
        for winner in found
    ]
    return f"{lines_markdown(heads, shares)}\n{lines_markdown(each, body)}"


def winners_csv(found: Iterable[Winner]) -> str:
    """Return the winners as CSV; several that tie are separated by a semicolon."""
    lines = [
        [w.table, w.attack, number(w.alpha_q, "g"), ";".join(w.published), ";".join(w.ours), w.agrees, w.behind]
        for w in found
    ]
    return lines_csv(["table", "attack", "alpha_q", "published", "ours", "agrees", "behind"], lines)


def _line(winner: Winner) -> list[str]:
    return [
        winner.attack,
        DASH if winner.alpha_q is None else f"{winner.alpha_q:g}",
        ", ".join(winner.published),
        ", ".join(winner.ours),
        "✓ same" if winner.agrees else "✗ differs",
        DASH if winner.agrees else f"{winner.behind:.2f}",
    ]


def _winner(table: Table, column: Column, entries: dict[str, Entry]) -> Winner:
    labels = list(entries)
    ours = {label: round(entry.mean, 2) for label, entry in entries.items() if entry.mean is not None}
    expected = _leading(labels, [entry.published for entry in entries.values()])
    return Winner(
        table=table.key,
        title=table.title,
        attack=column.attack_label,
        alpha_q=column.alpha_q,
        published=expected,
        ours=_leading(labels, [entry.mean for entry in entries.values()]),
        behind=round(max(ours.values()) - max(ours[label] for label in expected), 2),
    )


def _leading(labels: Sequence[str], values: Sequence[float | None]) -> tuple[str, ...]:
    return tuple(label for label, leads in zip(labels, leaders(values), strict=True) if leads)
