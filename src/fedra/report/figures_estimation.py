"""Figures 4 and 5: MCNE against a fixed number of malicious clients that is too low or too high."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fedra.experiments import read_paper
from fedra.report.cells import ReportCell, entry_of, in_order
from fedra.report.colours import rule_colour
from fedra.report.drawing import Drawing, label, legend_below, panels, percent_axis, styled, with_quantity
from fedra.report.names import printed, stands_for
from fedra.report.rows import datasets_of
from fedra.report.tables import estimation_rules

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def estimation(number: int, cells: Sequence[ReportCell]) -> Drawing | None:
    """Draw bars for each attack and claimed quantity, a panel for each data set of the figure."""
    definition = next(figure for figure in read_paper().figures if figure.number == number).grid
    rules = estimation_rules()
    compared = {(cell.dataset, cell.partition, cell.setting) for cell in cells if cell.rule in rules[1:]}
    wanted = [
        cell
        for cell in cells
        if cell.rule in rules
        and cell.attacked
        and (cell.dataset, cell.partition, cell.setting) in compared
        and stands_for(cell.dataset) in definition["datasets"]
        and cell.accuracy is not None
    ]
    if not {cell.rule for cell in wanted} & set(rules[1:]):
        return None
    datasets = datasets_of(wanted)
    attacks = in_order((cell.attack for cell in wanted), definition["attacks"])
    places = [
        (attack, alpha)
        for attack in attacks
        for alpha in sorted({cell.alpha_q for cell in wanted if cell.attack == attack}, key=lambda a: a or 0.0)
    ]
    with styled():
        figure, grid = panels(1, len(datasets), width=max(4.2, 0.95 * len(places)), height=3.3, share_y=True)
        for axes, dataset in zip(grid[0], datasets, strict=True):
            for offset, rule in zip((-0.27, 0.0, 0.27), rules, strict=True):
                _bars(axes, [c for c in wanted if (c.dataset, c.rule) == (dataset, rule)], rule, places, offset)
            ticks = [with_quantity(printed(attack), alpha, between="\n") for attack, alpha in places]
            axes.set_xticks(range(len(places)), ticks)
            axes.set_title(label(printed(dataset)))
            axes.grid(visible=False, axis="x")
        percent_axis(grid[0][0])
        # Room for the figures above the bars.
        grid[0][0].set_ylim(0, 1.12 * max(cell.accuracy or 0.0 for cell in wanted))
        legend_below(figure, grid[0][0], columns=3)
    caption = f"Figure {number}: MCNE against a fixed estimate that is too low (5) or too high (15)."
    return Drawing(key=f"figure{number}", caption=caption, figure=figure)


def _bars(
    axes: Axes, cells: Sequence[ReportCell], rule: str, places: Sequence[tuple[str, float | None]], offset: float
) -> None:
    entries = [entry_of(cell for cell in cells if (cell.attack, cell.alpha_q) == place) for place in places]
    points = [(at + offset, e.mean, e.std or 0.0) for at, e in enumerate(entries) if e and e.mean is not None]
    name = ("FedRA with MCNE", "under-estimated", "over-estimated")[estimation_rules().index(rule)]
    where, means, spreads = zip(*points, strict=True) if points else ((), (), ())
    yerr = spreads if any(spreads) else None
    axes.bar(where, means, 0.25, yerr=yerr, capsize=2, color=rule_colour(rule), label=name, error_kw={"linewidth": 0.8})
    for x, mean, spread in points:
        axes.annotate(f"{mean:.1f}", (x, mean + spread), (0, 2), textcoords="offset points", ha="center", fontsize=6.5)
