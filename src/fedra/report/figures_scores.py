"""Figure 6: scores of benign and malicious clients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fedra.experiments import read_paper
from fedra.experiments.results import SCORE_EDGES
from fedra.report.cells import ReportCell, in_order
from fedra.report.colours import BENIGN, MALICIOUS
from fedra.report.drawing import Drawing, label, legend_below, panels, styled
from fedra.report.names import printed
from fedra.report.rows import datasets_of
from fedra.report.tables import figure_rules

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def score_distributions(cells: Sequence[ReportCell], scores: pd.DataFrame) -> Drawing | None:
    """Draw histograms by data set and attack."""
    definition = next(figure for figure in read_paper().figures if figure.number == 6).grid
    scored = set(scores["run"])
    wanted = [
        cell
        for cell in cells
        if cell.rule in figure_rules(6)
        and cell.attack in definition["attacks"]
        and (cell.partition, cell.setting) == ("iid", "dynamic")
        and cell.alpha_q in definition["alpha_q"]
        and cell.run in scored
    ]
    if not wanted:
        return None
    datasets = datasets_of(wanted)
    attacks = in_order((cell.attack for cell in wanted), definition["attacks"])
    counted = scores[scores["run"].isin({cell.run for cell in wanted})]
    low, high = float(counted["low"].min()), float(counted["high"].max())
    with styled():
        figure, grid = panels(len(datasets), len(attacks), width=3.1, height=2.3, share_y=True)
        for axes_row, dataset in zip(grid, datasets, strict=True):
            for axes, attack in zip(axes_row, attacks, strict=True):
                runs = {cell.run for cell in wanted if (cell.dataset, cell.attack) == (dataset, attack)}
                _histogram(axes, counted[counted["run"].isin(runs)])
                axes.set_xlim(low, high)
                axes.set_title(label(f"{printed(dataset)}, {printed(attack)}"))
            axes_row[0].set_ylabel("share of clients (%)")
        for axes in grid[-1]:
            axes.set_xlabel("score / median score of the round")
            ticks = [power for power in range(-1, 4) if low <= power <= high]
            axes.set_xticks(ticks, [rf"$10^{{{power}}}$" for power in ticks])
        for axes in grid[:-1].flat:
            axes.set_xticks(ticks, [])
        legend_below(figure, grid[0][0], columns=2)
    caption = "Figure 6: scores of benign and malicious clients in the last 50 rounds."
    return Drawing(key="figure6", caption=caption, figure=figure)


def _histogram(axes: Axes, scores: pd.DataFrame) -> None:
    for malicious, name, colour in ((False, "benign clients", BENIGN), (True, "malicious clients", MALICIOUS)):
        own = scores[scores["malicious"] == malicious]
        shares = np.zeros(len(SCORE_EDGES) - 1)
        np.add.at(shares, np.abs(SCORE_EDGES[:-1, None] - own["low"].to_numpy()).argmin(axis=0), own["count"])
        shares *= 100.0 / max(1.0, shares.sum())
        axes.stairs(shares, SCORE_EDGES, fill=True, color=colour, alpha=0.35)
        axes.stairs(shares, SCORE_EDGES, color=colour, linewidth=1.6, label=name)
