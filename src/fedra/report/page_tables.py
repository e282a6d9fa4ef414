"""Tables of entries as HTML: readable without any script, and each entry a button for the script to open."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import groupby
from urllib.parse import quote

from fedra.report.model import Column, Entry, Row, Table
from fedra.report.names import printed
from fedra.report.rows import BEST_LABEL

DASH, _MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"
_FEW_COLUMNS = 2
# Points of difference from which on a colour is one step stronger.
_STEPS = (0.5, 2.0, 5.0, 15.0)


def table_html(table: Table, number: int, status: Mapping[str, str]) -> str:
    """Return a table, which is that of this number in the page's data; `status` is how each run ended."""
    compared = is_compared(table)
    best, best_published = _best(table, "mean"), _best(table, "published")
    lines = []
    for at, row in enumerate(table.rows):
        several = is_best_of_several(row)
        cells = []
        for place, (column, entry) in enumerate(zip(table.columns, row.entries, strict=True)):
            if entry is None:
                cells.append('<td class="none"><span class="state">not run</span></td>')
                continue
            marks = _marks(entry, best[place], best_published[place])
            by = printed(entry.rule) if several else ""
            said = escape(_said(row, column, entry), quote=True)
            cells.append(
                f'<td class="{marks}"><button type="button" class="cell" data-at="{number},{at},{place}" '
                f'data-cell="{cell_link(table, row, column)}" aria-label="{said}">'
                f"{_content(entry, status, by)}</button></td>"
            )
        parted = at and row.family != table.rows[at - 1].family
        lines.append(
            f'<tr{" class=parted" if parted else ""}><th scope="row">{escape(row.label)}'
            f'<small class="family">{escape(row.family)}</small></th>{"".join(cells)}</tr>'
        )
    body = "\n".join(lines)
    looks = f"table{'' if compared else ' plain'}{' slim' if len(table.columns) <= _FEW_COLUMNS else ''}"
    return f"""<section class="{looks}" id="{escape(table.key, quote=True)}">
<h3>{escape(table.title)}</h3>
<p class="caption">{escape(table.caption)}</p>
<div class="scroll" tabindex="0" role="region" aria-label="{escape(table.title, quote=True)}">
<table class="entries"><thead>{_head(table.columns)}</thead>
<tbody>
{body}
</tbody></table></div>
</section>"""


def is_compared(table: Table) -> bool:
    """Whether there is a published figure to compare with."""
    return any(entry is not None and entry.published is not None for row in table.rows for entry in row.entries)


def is_best_of_several(row: Row) -> bool:
    """Whether a row has the best of several rules, so that its entries say which."""
    return row.label == BEST_LABEL or len({entry.rule for entry in row.entries if entry}) > 1


def cell_link(table: Table, row: Row, column: Column) -> str:
    """Return what names an entry in the page's address, after `#cell=`."""
    alpha_q = "" if column.alpha_q is None else f"{column.alpha_q:g}"
    return "~".join(quote(part, safe="") for part in (table.key, row.label, column.attack_label, alpha_q))


def signed(value: float) -> str:
    """Return a difference with its sign, as typographers set it."""
    text = f"{value:+.2f}"
    return "±0.00" if text[1:] == "0.00" else text.replace("-", _MINUS)


def _head(columns: Sequence[Column]) -> str:
    groups = [(label, list(group)) for label, group in groupby(columns, key=lambda column: column.attack_label)]
    flat = all(len(group) == 1 and group[0].alpha_q is None for _, group in groups)
    if flat:
        heads = "".join(f'<th scope="col">{escape(label)}</th>' for label, _ in groups)
        return f'<tr><th scope="col" class="corner">rule</th>{heads}</tr>'
    heads = "".join(f'<th scope="colgroup" colspan="{len(group)}">{escape(label)}</th>' for label, group in groups)
    quantities = "".join(f'<th scope="col">{_quantity(column)}</th>' for column in columns)
    return f'<tr><th rowspan="2" scope="col" class="corner">rule</th>{heads}</tr><tr class="quantity">{quantities}</tr>'


def _quantity(column: Column) -> str:
    return "honest" if column.alpha_q is None else f"<i>&alpha;<sub>q</sub></i> {column.alpha_q:g}"


def _best(table: Table, name: str) -> list[float | None]:
    """Return the highest figure of each column, as printed."""
    columns: Iterator[list[float]] = (
        [value for row in table.rows if (entry := row.entries[at]) and (value := getattr(entry, name)) is not None]
        for at in range(len(table.columns))
    )
    return [round(max(values), 2) if values else None for values in columns]


def _marks(entry: Entry, best: float | None, best_published: float | None) -> str:
    marks = []
    if entry.mean is not None and round(entry.mean, 2) == best:
        marks.append("best")
    if entry.published is not None and round(entry.published, 2) == best_published:
        marks.append("best-published")
    if (difference := entry.difference) is not None:
        step = bisect_right(_STEPS, round(abs(difference), 2))
        marks.append(f"{'up' if difference > 0 else 'down'}{step}" if step else "even")
    return " ".join(marks)


def _content(entry: Entry, status: Mapping[str, str], by: str) -> str:
    states = [status.get(run, "missing") for run in entry.runs]
    done = states.count("done")
    if entry.mean is None:
        ours = f'<span class="state {"bad" if "failed" in states else ""}">{_state(states)}</span>'
    else:
        spread = "" if entry.std is None else f'<small class="std"> ± {entry.std:.2f}</small>'
        ours = f"{entry.mean:.2f}{spread}"
        if done < len(states):
            ours += f'<small class="part" title="{_state(states)}">{done}/{len(states)}</small>'
    published = DASH if entry.published is None else f"{entry.published:.2f}"
    difference = DASH if entry.difference is None else signed(entry.difference)
    maker = f'<small class="by">{escape(by)}</small>' if by else ""
    return (
        f'<span class="ours">{ours}</span><span class="published">{published}</span>'
        f'<span class="difference">{difference}</span>{maker}'
    )


def _state(states: Sequence[str]) -> str:
    """Return the worst that happened to the runs of an entry, in a word or two."""
    return next((state for state in ("failed", "unfinished", "missing") if state in states), "not run")


def _said(row: Row, column: Column, entry: Entry) -> str:
    quantity = "" if column.alpha_q is None else f", alpha q {column.alpha_q:g}"
    ours = "no result" if entry.mean is None else f"ours {entry.mean:.2f}"
    if entry.std is not None:
        ours += f" plus or minus {entry.std:.2f}"
    compared = ""
    if entry.published is not None:
        compared = f", published {entry.published:.2f}"
    if entry.difference is not None:
        compared += f", difference {entry.difference:+.2f}"
    return f"{row.label}, {column.attack_label}{quantity}: {ours}{compared}"
