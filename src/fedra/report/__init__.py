"""Reports of results: tables beside the paper's, figures, and one page that holds it all."""

from fedra.report.building import Report, build_report
from fedra.report.model import Column, Entry, Row, Table
from fedra.report.tables import paper_tables, study_tables
from fedra.report.winners import Agreement, Winner, agreements, winners

__all__ = [
    "Agreement",
    "Column",
    "Entry",
    "Report",
    "Row",
    "Table",
    "Winner",
    "agreements",
    "build_report",
    "paper_tables",
    "study_tables",
    "winners",
]
