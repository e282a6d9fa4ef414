"""Figure 6: scores of benign and malicious clients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fedra.experiments.results import SCORE_EDGES
from fedra.paper.published import read_paper
from fedra.paper.tables import figure_rules, paper_datasets, paper_name, paper_outcomes
from fedra.report.appearance import HONEST, MALICIOUS
from fedra.report.figures.drawing import Drawing, label, legend_below, panels, styled
from fedra.report.model import Table
from fedra.report.model.outcomes import ReportData, in_order

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def score_distributions(data: ReportData, _tables: Sequence[Table] = ()) -> Iterator[Drawing]:
    """Draw histograms by data set and attack."""
    scores = data.results.scores
    definition = read_paper().figure(6).grid
    scored = set(scores["run"])
    wanted = [
        outcome
        for outcome in paper_outcomes(data)
        if outcome.rule in figure_rules(6)
        and outcome.attack in definition["attacks"]
        and (outcome.partition, outcome.setting) == ("iid", "dynamic")
        and outcome.alpha_q in definition["alpha_q"]
        and outcome.run in scored
    ]
    if not wanted:
        return
    datasets = paper_datasets(wanted)
    attacks = in_order((outcome.attack for outcome in wanted), definition["attacks"])
    counted = scores[scores["run"].isin({outcome.run for outcome in wanted})]
    low, high = float(counted["low"].min()), float(counted["high"].max())
    with styled():
        figure, grid = panels(len(datasets), len(attacks), width=3.1, height=2.3, share_y=True)
        for axes_row, dataset in zip(grid, datasets, strict=True):
            for axes, attack in zip(axes_row, attacks, strict=True):
                runs = {outcome.run for outcome in wanted if (outcome.dataset, outcome.attack) == (dataset, attack)}
                _histogram(axes, counted[counted["run"].isin(runs)])
                axes.set_xlim(low, high)
                axes.set_title(label(f"{paper_name(dataset)}, {paper_name(attack)}"))
            axes_row[0].set_ylabel("share of clients (%)")
        for axes in grid[-1]:
            axes.set_xlabel("score / median score of the round")
            ticks = [power for power in range(-1, 4) if low <= power <= high]
            axes.set_xticks(ticks, [rf"$10^{{{power}}}$" for power in ticks])
        for axes in grid[:-1].flat:
            axes.set_xticks(ticks, [])
        legend_below(figure, grid[0][0], columns=2)
    caption = "Figure 6: scores of benign and malicious clients in the last 50 rounds."
    yield Drawing(key="figure6", caption=caption, figure=figure)


def _histogram(axes: Axes, scores: pd.DataFrame) -> None:
    for malicious, name, colour in ((False, "benign clients", HONEST), (True, "malicious clients", MALICIOUS)):
        own = scores[scores["malicious"] == malicious]
        shares = np.zeros(len(SCORE_EDGES) - 1)
        np.add.at(shares, np.abs(SCORE_EDGES[:-1, None] - own["low"].to_numpy()).argmin(axis=0), own["count"])
        shares *= 100.0 / max(1.0, shares.sum())
        axes.stairs(shares, SCORE_EDGES, fill=True, color=colour, alpha=0.35)
        axes.stairs(shares, SCORE_EDGES, color=colour, linewidth=1.6, label=name)
