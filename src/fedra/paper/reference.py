"""The paper as something to compare a report with."""

from __future__ import annotations

from fedra.paper.figures import FIGURES
from fedra.paper.matching import paper_grids, published_figure
from fedra.paper.table1 import statistics_lines, statistics_section
from fedra.paper.tables import PAPER_NAMES, paper_tables
from fedra.paper.winners import agreements, winners, winners_csv, winners_section
from fedra.report.model.outcomes import ReportData
from fedra.report.reference import Extension, Reference

TITLE = "Robust quantity-aware aggregation: results beside the paper's"


def paper_extension(data: ReportData) -> Extension:
    """Return what the paper adds to a report: nothing unless `fedra paper` has made a part of the results."""
    tables = paper_tables(data)
    if not tables:
        return Extension()
    found = winners(tables)
    shares = agreements(found)
    same, columns = (sum(getattr(share, name) for share in shares) for name in ("same", "columns"))
    return Extension(
        title=TITLE,
        names=PAPER_NAMES,
        grids=paper_grids(data.outcomes),
        heading="The paper's tables",
        tables=tables,
        sections=(
            *([winners_section(found)] if found else []),
            statistics_section(statistics_lines(data.outcomes)),
        ),
        figures=FIGURES,
        files={"winners.csv": winners_csv(found)} if found else {},
        notes=(f"winner as published in {same} of {columns} columns",) if found else (),
        values={"winners": {share.table: {"same": share.same, "columns": share.columns} for share in shares}},
    )


PAPER = Reference(
    source="Yi et al., Robust Quantity-Aware Aggregation for Federated Learning, KDD 2023",
    published=published_figure,
    extension=paper_extension,
)
