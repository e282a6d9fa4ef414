"""Figures 4 and 5: MCNE against a fixed number of malicious clients that is too low or too high."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from fedra.paper.figures.accuracy import spread_note
from fedra.paper.published import read_paper
from fedra.paper.tables import estimation_rules, paper_datasets, paper_name, paper_outcomes, stands_for
from fedra.report.appearance import rule_style
from fedra.report.figures.drawing import Drawing, label, legend_below, panels, percent_axis, styled, with_quantity
from fedra.report.model import Table
from fedra.report.model.comparison import part_of
from fedra.report.model.outcomes import Outcome, ReportData, entry_of, in_order

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def estimation(number: int, data: ReportData, _tables: Sequence[Table] = ()) -> Iterator[Drawing]:
    """Draw bars for each attack and claimed quantity, a panel for each data set of the figure."""
    outcomes = paper_outcomes(data)
    definition = read_paper().figure(number).grid
    rules = estimation_rules()
    compared = {part_of(outcome) for outcome in outcomes if outcome.rule in rules[1:]}
    wanted = [
        outcome
        for outcome in outcomes
        if outcome.rule in rules
        and outcome.attacked
        and part_of(outcome) in compared
        and stands_for(outcome.dataset) in definition["datasets"]
        and outcome.accuracy is not None
    ]
    if not {outcome.rule for outcome in wanted} & set(rules[1:]):
        return
    datasets = paper_datasets(wanted)
    attacks = in_order((outcome.attack for outcome in wanted), definition["attacks"])
    places = [
        (attack, alpha)
        for attack in attacks
        for alpha in sorted({outcome.alpha_q for outcome in wanted if outcome.attack == attack}, key=lambda a: a or 0.0)
    ]
    with styled():
        figure, grid = panels(1, len(datasets), width=max(4.2, 0.95 * len(places)), height=3.3, share_y=True)
        for axes, dataset in zip(grid[0], datasets, strict=True):
            for offset, rule in zip((-0.27, 0.0, 0.27), rules, strict=True):
                _bars(axes, [c for c in wanted if (c.dataset, c.rule) == (dataset, rule)], rule, places, offset)
            ticks = [with_quantity(paper_name(attack), alpha, between="\n") for attack, alpha in places]
            axes.set_xticks(range(len(places)), ticks)
            axes.set_title(label(paper_name(dataset)))
            axes.grid(visible=False, axis="x")
        percent_axis(grid[0][0])
        # Room for the figures above the bars.
        grid[0][0].set_ylim(0, 1.12 * max(outcome.accuracy or 0.0 for outcome in wanted))
        legend_below(figure, grid[0][0], columns=3)
    caption = f"Figure {number}: MCNE against a fixed estimate that is too low (5) or too high (15)."
    yield Drawing(key=f"figure{number}", caption=f"{caption}{spread_note(wanted)}", figure=figure)


def _bars(
    axes: Axes, outcomes: Sequence[Outcome], rule: str, places: Sequence[tuple[str, float | None]], offset: float
) -> None:
    entries = [
        entry_of(outcome for outcome in outcomes if (outcome.attack, outcome.alpha_q) == place) for place in places
    ]
    points = [(at + offset, e.mean, e.std or 0.0) for at, e in enumerate(entries) if e and e.mean is not None]
    name = ("FedRA with MCNE", "under-estimated", "over-estimated")[estimation_rules().index(rule)]
    where, means, spreads = zip(*points, strict=True) if points else ((), (), ())
    yerr = spreads if any(spreads) else None
    axes.bar(
        where, means, 0.25, yerr=yerr, capsize=2, color=rule_style(rule).colour, label=name, error_kw={"linewidth": 0.8}
    )
    for x, mean, spread in points:
        axes.annotate(f"{mean:.1f}", (x, mean + spread), (0, 2), textcoords="offset points", ha="center", fontsize=6.5)
