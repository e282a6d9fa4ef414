"""Tables of accuracies on a terminal, as `fedra grid`, `fedra paper` and `fedra contest` end with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Column, Table

from fedra.cli.console import console, print_table

if TYPE_CHECKING:
    from fedra.report import model

_UNLIMITED = 10_000


def show(title: str, table: Table, caption: str) -> None:
    """Print a table with its title also where there is no terminal: several follow one another."""
    console.print(f"\n{escape(title)}", style="bold", soft_wrap=True)
    print_table(table)
    console.print(escape(caption), soft_wrap=True)


def show_table(table: model.Table) -> None:
    """Print a table of accuracies: a section for each attack, a line for each rule, a column for each alpha_q.

    Where the terminal is too narrow for that, each attack has a table of its own.
    """
    attacks = list(dict.fromkeys(column.attack_label for column in table.columns))
    caption = (
        f"{table.caption} In brackets: published, and the difference (ours minus published)."
        if table.compared
        else table.caption
    )
    lines = Table(Column("attack", no_wrap=True), Column("rule", no_wrap=True))
    _fill(lines, table, attacks)
    if not console.is_terminal or _width(lines) <= console.width:
        show(table.title, lines, caption)
        return
    console.print(f"\n{escape(table.title)}", style="bold", soft_wrap=True)
    for attack in attacks:
        narrow = Table(Column("rule", overflow="fold"), box=None, padding=(0, 1, 0, 0), pad_edge=False)
        _fill(narrow, table, [attack], between=" ")
        console.print(escape(attack), style="italic", soft_wrap=True)
        print_table(narrow)
    console.print(escape(caption), soft_wrap=True)


def _fill(lines: Table, table: model.Table, attacks: Sequence[str], *, between: str = "") -> None:
    """Add the columns and lines of some attacks; `between` is where a narrow column may break."""
    quantities = list(dict.fromkeys(column.alpha_q for column in table.columns if column.attack_label in attacks))
    for alpha_q in quantities:
        lines.add_column("accuracy" if alpha_q is None else f"alpha_q {alpha_q:g}", justify="right")
    for attack in attacks:
        places = {column.alpha_q: i for i, column in enumerate(table.columns) if column.attack_label == attack}
        for row, best in zip(table.rows, table.best, strict=True):
            entries = [row.entries[i] for i in places.values()]
            if any(entries):
                at = [places.get(alpha_q) for alpha_q in quantities]
                texts = ["" if i is None else _text(row.entries[i], best[i], between) for i in at]
                shown = [] if between else [escape(attack)]
                lines.add_row(*shown, escape(_label(row, entries)), *texts)
        lines.add_section()


def _width(lines: Table) -> int:
    """Return how wide a table is that nothing makes narrower."""
    return lines.__rich_measure__(console, console.options.update_width(_UNLIMITED)).maximum


def _label(row: model.Row, entries: Iterable[model.Entry | None]) -> str:
    """Say which rule is behind the row of the best ones."""
    behind = dict.fromkeys(entry.by for entry in entries if entry is not None and entry.mean is not None)
    return f"{row.label}: {', '.join(behind)}" if row.several and behind else row.label


def _text(entry: model.Entry | None, best: bool, between: str) -> str:
    if entry is None:
        return ""
    if entry.mean is None:
        return "none done" if entry.published is None else f"none done ({entry.published:.2f})"
    spread = "" if entry.std is None else f"{between}±{entry.std:.2f}"
    ours = f"{entry.mean:.2f}{spread}"
    if best:
        ours = f"[bold]{ours}[/]"
    return ours if entry.difference is None else f"{ours} ({entry.published:.2f}, {entry.difference:+.2f})"
