"""Figures of one run: its accuracy, and whom its rule rejected."""

from __future__ import annotations

from collections.abc import Iterator

from fedra.report.appearance import HONEST, MALICIOUS, NEUTRAL
from fedra.report.figures.drawing import Drawing, label, legend_below, panels, percent_axis, styled
from fedra.report.model.one_run import OneRun

# What a round had, as it is drawn and as it is called.
SERIES = {
    "malicious": ("malicious clients in the round", NEUTRAL, "--"),
    "caught": ("of these, rejected", MALICIOUS, "-"),
    "wrongly_rejected": ("honest clients, wrongly rejected", HONEST, "-"),
    "estimated": ("estimated number of malicious clients", "#009e73", ":"),
}


def accuracy(run: OneRun) -> Iterator[Drawing]:
    """Draw accuracy over rounds, where it was measured."""
    if run.measured.empty:
        return
    with styled():
        figure, grid = panels(1, 1, width=6.5, height=3.4)
        axes = grid[0][0]
        axes.plot(run.measured["round"], run.measured["accuracy"], "o-", color=MALICIOUS, linewidth=2, markersize=4)
        axes.set_xlabel("rounds")
        axes.set_title(label(run.outcome.run, longest=80))
        percent_axis(axes)
    yield Drawing(key="accuracy", caption="Accuracy over rounds.", figure=figure, embedded=False)


def rejections(run: OneRun) -> Iterator[Drawing]:
    """Draw how many clients of a round were malicious, and how many were rejected rightly and wrongly."""
    size, points = run.per_round
    if points.empty:
        return
    with styled():
        figure, grid = panels(1, 1, width=6.5, height=3.4)
        axes = grid[0][0]
        for name, (text, colour, dash) in SERIES.items():
            if points[name].notna().any():
                axes.plot(points["round"], points[name], dash, color=colour, linewidth=1.6, label=text)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("rounds")
        axes.set_ylabel("clients in a round")
        legend_below(figure, axes, columns=2)
    means = "" if size == 1 else f" Each point is the mean of {size} rounds."
    yield Drawing(key="rejections", caption=f"Whom the rule rejected.{means}", figure=figure, embedded=False)
