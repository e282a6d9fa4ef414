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
from fedra.report.figures.drawing import Drawing, legend_below, panels, styled, with_quantity
from fedra.report.model import Table
from fedra.report.model.outcomes import ReportData, in_order

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def score_distributions(data: ReportData, _tables: Sequence[Table] = ()) -> Iterator[Drawing]:
    """Draw histograms by data set and attack."""
    scores = data.results.scores
    definition = read_paper().figure(6).grid
    scored = set(scores["run"])
    scored_here = [
        outcome
        for outcome in paper_outcomes(data)
        if outcome.rule in figure_rules(6)
        and outcome.attack in definition["attacks"]
        and (outcome.partition, outcome.setting) == ("iid", "dynamic")
        and outcome.run in scored
    ]
    # At the paper's alpha_q; where that was not asked for, at those that were.
    wanted = [outcome for outcome in scored_here if outcome.alpha_q in definition["alpha_q"]] or scored_here
    if not wanted:
        return
    quantities = sorted({outcome.alpha_q for outcome in wanted}, key=lambda alpha: alpha or 0.0)
    rows = [(dataset, alpha) for dataset in paper_datasets(wanted) for alpha in quantities]
    attacks = in_order((outcome.attack for outcome in wanted), definition["attacks"])
    counted = scores[scores["run"].isin({outcome.run for outcome in wanted})]
    low, high = float(counted["low"].min()), float(counted["high"].max())
    with styled():
        figure, grid = panels(len(rows), len(attacks), width=3.1, height=2.3, share_y=True)
        for axes_row, (dataset, alpha) in zip(grid, rows, strict=True):
            for axes, attack in zip(axes_row, attacks, strict=True):
                place = (dataset, attack, alpha)
                runs = {found.run for found in wanted if (found.dataset, found.attack, found.alpha_q) == place}
                _histogram(axes, counted[counted["run"].isin(runs)])
                axes.set_xlim(low, high)
                title = f"{paper_name(dataset)}, {paper_name(attack)}"
                axes.set_title(with_quantity(title, alpha if len(quantities) > 1 else None))
            axes_row[0].set_ylabel("share of clients (%)")
        for axes in grid[-1]:
            axes.set_xlabel("score / median score of the round")
            ticks = [power for power in range(-1, 4) if low <= power <= high]
            axes.set_xticks(ticks, [rf"$10^{{{power}}}$" for power in ticks])
        for axes in grid[:-1].flat:
            axes.set_xticks(ticks, [])
        legend_below(figure, grid[0][0], columns=2)
    claimed = ", ".join("honest" if alpha is None else f"{alpha:g}" for alpha in quantities)
    caption = f"Figure 6: scores of benign and malicious clients in the last 50 rounds; alpha_q {claimed}."
    yield Drawing(key="figure6", caption=caption, figure=figure)


def _histogram(axes: Axes, scores: pd.DataFrame) -> None:
    for malicious, name, colour in ((False, "benign clients", HONEST), (True, "malicious clients", MALICIOUS)):
        own = scores[scores["malicious"] == malicious]
        shares = np.zeros(len(SCORE_EDGES) - 1)
        np.add.at(shares, np.abs(SCORE_EDGES[:-1, None] - own["low"].to_numpy()).argmin(axis=0), own["count"])
        shares *= 100.0 / max(1.0, shares.sum())
        axes.stairs(shares, SCORE_EDGES, fill=True, color=colour, alpha=0.35)
        axes.stairs(shares, SCORE_EDGES, color=colour, linewidth=1.6, label=name)
