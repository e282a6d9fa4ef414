"""The list of a page's tables: a line for each of the paper's tables and figures and for each study."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from urllib.parse import quote

from fedra.report.model import Table
from fedra.report.names import printed


def contents_html(tables: Sequence[Table]) -> str:
    """Return list items: what the tables of a line are of, and a link to each by what tells it from the others."""
    lines: dict[str, list[Table]] = {}
    for table in tables:
        lines.setdefault(table.title.rpartition(": ")[0], []).append(table)
    return "".join(_line(name, group) for name, group in lines.items())


def _line(name: str, group: Sequence[Table]) -> str:
    places = [_place(table) for table in group]
    kept = [at for at in range(len(places[0])) if at == 0 or len({place[at] for place in places}) > 1]
    shared = [part for at, part in enumerate(places[0]) if at not in kept]
    links = " ".join(_link(table, [place[at] for at in kept]) for table, place in zip(group, places, strict=True))
    head = f"<b>{escape(name)}</b> " if name else ""
    return f"<li>{head}{links} <small>{escape(', '.join(filter(None, shared)))}</small></li>"


def _place(table: Table) -> tuple[str, str, str, str]:
    """Return data set, partition, setting, and what else the title says."""
    where = (printed(table.dataset), printed(table.partition), printed(table.setting))
    said = table.title.rpartition(": ")[2].split(", ")
    return (*where, ", ".join(part for part in said if part not in where))


def _link(table: Table, parts: Sequence[str]) -> str:
    title = escape(table.title, quote=True)
    return f'<a href="#{escape(quote(table.key), quote=True)}" title="{title}">{escape(", ".join(parts))}</a>'
