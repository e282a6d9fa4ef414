"""Accuracy over rounds behind a table: a panel for each attack, at the largest claimed quantity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pandas as pd

from fedra.experiments.paper import BEST_IGNORANT
from fedra.report.colours import rule_colours
from fedra.report.drawing import MARKERS, Drawing, label, panels, percent_axis, styled, with_quantity
from fedra.report.model import Entry, Table
from fedra.report.names import printed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

_MOST_IN_A_ROW = 4
_LONGEST_TITLE = 80


def curve_drawing(table: Table, curves: Mapping[str, pd.DataFrame]) -> Drawing | None:
    """Draw the means over seeds, with the range over seeds behind them; None where no run was measured."""
    places = _places(table)
    drawn = {
        place: {
            row.label: (entry, line)
            for row in table.rows
            if (entry := row.entries[place]) and (line := _mean_curve(entry, curves)) is not None
        }
        for place in places
    }
    filled = [place for place in places if drawn[place]]
    if not filled:
        return None
    width = min(len(filled), _MOST_IN_A_ROW)
    with styled():
        figure, grid = panels(-(-len(filled) // width), width, width=3.5, height=2.7, share_y=True)
        rules = {name: _rule(name, entry) for found in drawn.values() for name, (entry, _) in found.items()}
        colours = rule_colours(rules.values())
        handles = {}
        for axes in grid.flat[len(filled) :]:
            axes.set_axis_off()
        for axes, place in zip(grid.flat, filled, strict=False):
            for name, (entry, line) in drawn[place].items():
                handles[name] = _draw(axes, rules[name], colours[rules[name]], entry, line)
            column = table.columns[place]
            axes.set_title(with_quantity(column.attack_label, column.alpha_q))
            axes.set_xlabel("round")
        for row in grid:
            percent_axis(row[0])
        shown = [row.label for row in table.rows if row.label in handles]
        figure.legend([handles[name] for name in shown], [label(name) for name in shown], loc="outside right center")
        figure.suptitle(label(table.title, longest=_LONGEST_TITLE), fontsize=10)
    caption = f"{table.title}: accuracy over rounds."
    return Drawing(key=f"curves-{table.key}", caption=caption, figure=figure)


def _places(table: Table) -> list[int]:
    """Return for each attack the column with the largest claim."""
    largest: dict[str, int] = {}
    for place, column in enumerate(table.columns):
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


def _rule(name: str, entry: Entry) -> str:
    return entry.rule if printed(entry.rule) == name else BEST_IGNORANT


def _draw(axes: Axes, rule: str, colour: str, entry: Entry, line: pd.DataFrame) -> Line2D:
    stands_out = rule == "fedra"
    rounds = line.index.to_numpy()
    if len(entry.runs) > 1:
        axes.fill_between(rounds, line["min"], line["max"], color=colour, alpha=0.15, linewidth=0)
    (handle,) = axes.plot(
        rounds,
        line["mean"],
        color=colour,
        linewidth=2.6 if stands_out else 1.4,
        zorder=4 if stands_out else 3,
        marker=MARKERS.get(rule, "."),
        markersize=4,
        markevery=max(1, len(rounds) // 6),
    )
    return handle
