"""Accuracy over rounds behind a table: a panel for each attack, at the largest claimed quantity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from fedra.report.appearance import RuleStyle, rule_styles
from fedra.report.figures.drawing import Drawing, label, line_looks, panels, percent_axis, styled, with_quantity
from fedra.report.model import Entry, Table
from fedra.report.model.outcomes import ReportData

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

_MOST_IN_A_ROW = 4
_LONGEST_TITLE = 80


def accuracy_curves(data: ReportData, tables: Sequence[Table]) -> Iterator[Drawing]:
    """Draw accuracy over rounds for each table whose runs have any."""
    for table in tables:
        if drawing := curve_drawing(table, data.curves):
            yield drawing


def curve_drawing(table: Table, curves: Mapping[str, pd.DataFrame]) -> Drawing | None:
    """Draw the means over seeds, with the range over seeds behind them; None where no run was measured."""
    places = _places(table)
    drawn = {
        place: {
            at: (entry, line)
            for at, row in enumerate(table.rows)
            if (entry := row.entries[place]) and (line := _mean_curve(entry, curves)) is not None
        }
        for place in places
    }
    filled = [place for place in places if drawn[place]]
    if not filled:
        return None
    width = min(len(filled), _MOST_IN_A_ROW)
    styles = rule_styles((row.rule, row.own) for row in table.rows)
    with styled():
        figure, grid = panels(-(-len(filled) // width), width, width=3.5, height=2.7, share_y=True)
        handles = {}
        for axes in grid.flat[len(filled) :]:
            axes.set_axis_off()
        for axes, place in zip(grid.flat, filled, strict=False):
            for at, (entry, line) in drawn[place].items():
                handles[at] = _draw(axes, styles[at], entry, line)
            column = table.columns[place]
            axes.set_title(with_quantity(column.attack_label, column.alpha_q))
            axes.set_xlabel("round")
        for axes_row in grid:
            percent_axis(axes_row[0])
        visible = sorted(handles)
        texts = [label(table.rows[at].label) for at in visible]
        legend = figure.legend([handles[at] for at in visible], texts, loc="outside right center")
        for at, text in zip(visible, legend.get_texts(), strict=True):
            text.set_fontweight("bold" if table.rows[at].own else "normal")
        figure.suptitle(label(table.title, longest=_LONGEST_TITLE), fontsize=10)
    caption = f"{table.title}: accuracy over rounds."
    return Drawing(key=f"curves-{table.key}", caption=caption, figure=figure, embedded=False)


def _places(table: Table) -> list[int]:
    """Return for each attack the column with the largest claim."""
    largest: dict[str, int] = {}
    for place, column in enumerate(table.columns):
        before = largest.get(column.attack)
        if before is None or (column.alpha_q or 0.0) >= (table.columns[before].alpha_q or 0.0):
            largest[column.attack] = place
    return list(largest.values())


def _mean_curve(entry: Entry, curves: Mapping[str, pd.DataFrame]) -> pd.DataFrame | None:
    found = [curves[run] for run in entry.runs if run in curves]
    if not found:
        return None
    by_round = pd.concat(found).groupby("round")["accuracy"]
    whole = by_round.agg(["mean", "min", "max", "count"])
    # A seed that is not as far as the others would make a step in the mean.
    return whole[whole["count"] == len(found)] if (whole["count"] == len(found)).any() else whole


def _draw(axes: Axes, style: RuleStyle, entry: Entry, line: pd.DataFrame) -> Line2D:
    rounds = line.index.to_numpy()
    if len(entry.runs) > 1:
        axes.fill_between(
            rounds, line["min"], line["max"], color=style.colour, alpha=0.06 if style.faint else 0.15, linewidth=0
        )
    (handle,) = axes.plot(rounds, line["mean"], **line_looks(style), markersize=4, markevery=max(1, len(rounds) // 6))
    return handle
