"""A picture of the contest: how far each rule is behind the best one in each cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from fedra.contest.standings import place_name, standings
from fedra.contest.tables import BROKEN_GROUP, CONTEST_GROUP
from fedra.report.figures.drawing import Drawing, label, styled, with_quantity
from fedra.report.model import Table
from fedra.report.model.outcomes import ReportData

# Regret from which on a cell is as dark as it can be; most of what matters lies below.
_DARKEST = 60.0
_WIDTH, _ROW, _TITLE = 7.6, 0.21, 0.34
# A letter of a rule's name, which stands upright, and what is left around the name.
_LETTER, _AROUND, _LONGEST = 0.062, 0.12, 22


def regret_map(_data: ReportData, tables: Sequence[Table]) -> Iterator[Drawing]:
    """Draw a line for each cell and a column for each rule, the best rule to the left."""
    for group, key, what in (
        (CONTEST_GROUP, "contest-regret", "the contest"),
        (BROKEN_GROUP, "contest-broken-regret", "the contest with an assumption broken"),
    ):
        members = [table for table in tables if table.group == group and standings([table])]
        if members:
            yield _drawing(members, key, what)


def _drawing(tables: Sequence[Table], key: str, what: str) -> Drawing:
    from matplotlib.figure import Figure

    order = standings(tables)
    found = {
        (regret.table.key, regret.column, standing.rule): regret.points
        for standing in order
        for regret in standing.regrets
    }
    rules = [label(standing.label, longest=_LONGEST) for standing in order]
    names_height = max(min(len(standing.label), _LONGEST) for standing in order) * _LETTER + _AROUND
    heights = [len(table.columns) * _ROW + _TITLE for table in tables]
    with styled():
        figure = Figure(figsize=(_WIDTH, sum(heights) + 2 * names_height), layout="constrained")
        panels = figure.subplots(len(tables), 1, squeeze=False, height_ratios=heights)[:, 0]
        for number, (axes, table) in enumerate(zip(panels, tables, strict=True)):
            values = np.array(
                [
                    [found.get((table.key, column, standing.rule), np.nan) for standing in order]
                    for column in table.columns
                ]
            )
            axes.imshow(values, cmap="YlOrRd", vmin=0, vmax=_DARKEST, aspect="auto")
            for (line, place), value in np.ndenumerate(values):
                text = "" if np.isnan(value) else f"{value:.0f}"
                shade = "white" if value > 0.6 * _DARKEST else "#333333"
                axes.text(place, line, text, ha="center", va="center", fontsize=7, color=shade)
            names = [with_quantity(column.attack_label, column.alpha_q) for column in table.columns]
            axes.set_yticks(range(len(names)), names, fontsize=7)
            axes.set_title(label(place_name(table)), loc="left", fontsize=9)
            axes.grid(visible=False)
            axes.tick_params(length=0)
            for spine in axes.spines.values():
                spine.set_visible(False)
            # Rules at both ends: the picture is as high as there are cells.
            ends = {"bottom": number == len(tables) - 1, "top": number == 0}
            axes.set_xticks(range(len(rules)), rules, rotation=90, fontsize=8)
            axes.tick_params(axis="x", **{f"label{end}": shown for end, shown in ends.items()})
    caption = (
        f"Regret in each cell of {what}: points behind the best rule; rules by their worst, least to the left. "
        f"From {_DARKEST:.0f} points on a cell is as dark as it can be."
    )
    return Drawing(key=key, caption=caption, figure=figure)
