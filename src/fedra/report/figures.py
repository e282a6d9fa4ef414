"""The paper's figures from our results, and the accuracy over rounds behind each table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fedra.experiments import Results, read_paper
from fedra.report.cells import report_cells
from fedra.report.curves import curve_drawing
from fedra.report.drawing import Drawing
from fedra.report.figures_accuracy import against_quantity, without_attack
from fedra.report.figures_estimation import estimation
from fedra.report.figures_scores import score_distributions
from fedra.report.model import Table


def paper_drawings(results: Results) -> list[Drawing]:
    """Draw the paper's figures 1, 2, 4, 5 and 6, as far as there are results."""
    cells = [cell for cell in report_cells(results) if cell.is_paper]
    drawn = (
        without_attack(cells),
        against_quantity(cells),
        estimation(4, cells),
        estimation(5, cells),
        score_distributions(cells, results.scores),
    )
    return [drawing for drawing in drawn if drawing is not None]


def missing_figures(drawings: Sequence[Drawing]) -> tuple[str, ...]:
    """Return which of the paper's figures were not drawn; the third is a diagram of the method."""
    drawn = {drawing.key for drawing in drawings}
    return tuple(name for figure in read_paper().figures if (name := f"figure{figure.number}") not in drawn)


def table_drawings(results: Results, tables: Sequence[Table]) -> Iterator[Drawing]:
    """Draw accuracy over rounds for each table whose runs have any."""
    curves = {str(run): lines for run, lines in results.curves.groupby("run", observed=True)}
    for table in tables:
        if drawing := curve_drawing(table, curves):
            yield drawing
