"""Reports of results: tables, figures, and one page that holds it all; of any grids, or of one run."""

from fedra.report.building import TABLES, Report, build_report, write_report
from fedra.report.figures import FIGURES
from fedra.report.model import Column, Entry, Row, Table
from fedra.report.model.comparison import grid_tables
from fedra.report.model.outcomes import Outcome, ReportData
from fedra.report.reference import Extension, Reference, Section, TextTable

__all__ = [
    "FIGURES",
    "TABLES",
    "Column",
    "Entry",
    "Extension",
    "Outcome",
    "Reference",
    "Report",
    "ReportData",
    "Row",
    "Section",
    "Table",
    "TextTable",
    "build_report",
    "grid_tables",
    "write_report",
]
