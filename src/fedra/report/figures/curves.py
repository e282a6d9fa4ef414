"""Accuracy over rounds behind a table: a panel for each of its columns, an attack with a claimed quantity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pandas as pd

from fedra.report.appearance import NEUTRAL, RuleStyle, rule_styles
from fedra.report.figures.drawing import (
    Drawing,
    label,
    line_looks,
    own_first,
    panels,
    percent_axis,
    styled,
    with_quantity,
)
from fedra.report.model import Entry, Table
from fedra.report.model.outcomes import ReportData

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

_FEW_ATTACKS = 6
_USUAL_WIDTH, _MOST_IN_A_ROW = 4, 5
_LONGEST_TITLE = 80
_LEGEND_WIDTH = 2.2
_BAND = "band: lowest to highest seed"
_BANDS_EXPLAINED = " Lines are means over seeds; a band reaches from the lowest to the highest seed."


def accuracy_curves(data: ReportData, tables: Sequence[Table]) -> Iterator[Drawing]:
    """Draw accuracy over rounds for each table whose runs have any."""
    for table in tables:
        if drawing := curve_drawing(table, data.curves):
            yield drawing


def curve_drawing(table: Table, curves: Mapping[str, pd.DataFrame]) -> Drawing | None:
    """Draw the means over seeds, with the range over seeds behind them; None where no run was measured."""
    drawn = {
        place: {
            at: line
            for at, row in enumerate(table.rows)
            if (entry := row.entries[place]) and (line := _mean_curve(entry, curves)) is not None
        }
        for place in range(len(table.columns))
    }
    filled = [place for place in drawn if drawn[place]]
    if not filled:
        return None
    rows = panel_rows([list(group) for _, group in groupby(filled, lambda place: table.columns[place].attack)])
    styles = rule_styles((row.rule, row.own) for row in table.rows)
    with styled():
        figure, grid = panels(len(rows), max(map(len, rows)), width=3.5, height=2.7, share_y=True)
        # The legend takes no room from the panels.
        figure.set_figwidth(figure.get_figwidth() + _LEGEND_WIDTH)
        handles: dict[int, Any] = {}
        for axes_row, places in zip(grid, rows, strict=True):
            for axes in axes_row[len(places) :]:
                axes.set_axis_off()
            for axes, place in zip(axes_row, places, strict=False):
                for at, line in drawn[place].items():
                    handles[at] = _draw(axes, styles[at], line)
                column = table.columns[place]
                axes.set_title(with_quantity(column.attack_label, column.alpha_q))
                axes.set_xlabel("round")
            percent_axis(axes_row[0])
        banded = any(_has_band(line) for lines in drawn.values() for line in lines.values())
        _legend(figure, table, handles, banded=banded)
        figure.suptitle(label(table.title, longest=_LONGEST_TITLE), fontsize=10)
    caption = f"{table.title}: accuracy over rounds.{_BANDS_EXPLAINED if banded else ''}"
    return Drawing(key=f"curves-{table.key}", caption=caption, figure=figure, embedded=False)


def panel_rows(groups: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the panels row by row: those of an attack side by side, several attacks in a row where there are many.

    Args:
        groups: the panels of each attack, one for each claimed quantity.
    """
    widest = max(map(len, groups))
    if sum(map(len, groups)) <= _USUAL_WIDTH:
        return [[place for group in groups for place in group]]
    crowded = widest == 1 or len(groups) > _FEW_ATTACKS
    width = min(widest * max(1, _USUAL_WIDTH // widest) if crowded else widest, _MOST_IN_A_ROW)
    rows: list[list[int]] = []
    # How many panels each attack of the last row has there.
    sizes: list[int] = []
    for group in groups:
        for part in (group[at : at + width] for at in range(0, len(group), width)):
            together = crowded or {*sizes, len(part)} == {1}
            if rows and together and len(rows[-1]) + len(part) <= width:
                rows[-1] += part
                sizes.append(len(part))
            else:
                rows.append(list(part))
                sizes = [len(part)]
    return rows


def _mean_curve(entry: Entry, curves: Mapping[str, pd.DataFrame]) -> pd.DataFrame | None:
    found = [curves[run] for run in entry.runs if run in curves]
    if not found:
        return None
    by_round = pd.concat(found).groupby("round")["accuracy"]
    whole = by_round.agg(["mean", "min", "max", "count"])
    # A seed that is not as far as the others would make a step in the mean.
    return whole[whole["count"] == len(found)] if (whole["count"] == len(found)).any() else whole


def _has_band(line: pd.DataFrame) -> bool:
    return bool((line["count"] > 1).any())


def _draw(axes: Axes, style: RuleStyle, line: pd.DataFrame) -> Line2D:
    rounds = line.index.to_numpy()
    if _has_band(line):
        shade = 0.2 if style.strong else 0.06 if style.faint else 0.15
        depth = 2 if style.strong else 1
        axes.fill_between(rounds, line["min"], line["max"], color=style.colour, alpha=shade, linewidth=0, zorder=depth)
    size, every = 6 if style.strong else 4, max(1, len(rounds) // 6)
    (handle,) = axes.plot(rounds, line["mean"], **line_looks(style), markersize=size, markevery=every)
    return handle


def _legend(figure: Any, table: Table, handles: Mapping[int, Any], *, banded: bool) -> None:
    from matplotlib.patches import Patch

    order = own_first(sorted(handles), lambda at: table.rows[at].own)
    keys, texts = [handles[at] for at in order], [label(table.rows[at].label) for at in order]
    if banded:
        keys.append(Patch(color=NEUTRAL, alpha=0.25, linewidth=0))
        texts.append(_BAND)
    legend = figure.legend(keys, texts, loc="outside right center")
    for at, text in zip(order, legend.get_texts(), strict=False):
        text.set_fontweight("bold" if table.rows[at].own else "normal")
