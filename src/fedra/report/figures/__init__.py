"""Every figure of a report by name. To add one: one file here, and one line in FIGURES."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from fedra.report.figures.curves import accuracy_curves
from fedra.report.figures.drawing import Drawing, require_matplotlib
from fedra.report.figures.one_run import accuracy, rejections
from fedra.report.model import Table
from fedra.report.model.one_run import OneRun
from fedra.report.model.outcomes import ReportData

Figure = Callable[[ReportData, Sequence[Table]], Iterable[Drawing]]
RunFigure = Callable[[OneRun], Iterable[Drawing]]

# Of results: called with them and with the report's tables.
FIGURES: dict[str, Figure] = {
    "curves": accuracy_curves,
}
# Of one run.
RUN_FIGURES: dict[str, RunFigure] = {
    "accuracy": accuracy,
    "rejections": rejections,
}

__all__ = ["FIGURES", "RUN_FIGURES", "Drawing", "Figure", "RunFigure", "require_matplotlib"]
