"""Put the tables and pictures of the committed results where the documentation shows them.

A page has them between markers: `<!-- KEY -->` for a table of the report, `<!-- KEY error -->` for the mean error of
the estimated number of malicious clients in the same cells, `<!-- winners -->` for who wins.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from fedra.experiments import Results
from fedra.paper import PAPER, winners
from fedra.paper.winners import winners_markdown
from fedra.report import ReportData, build_report, grid_tables
from fedra.report.formats.markdown import estimate_markdown, table_markdown
from harness import quote

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results"
QUOTING = ("reproduction-tables", "reproduction-studies", "security", "choosing")
PAGES = tuple(ROOT / "docs" / f"{name}.md" for name in QUOTING)
IMAGES = ROOT / "docs" / "images"
PICTURES = ("curves-table2-mnist", "figure6")


def texts(results: Results) -> dict[str, str]:
    """Return what belongs between markers, by their names."""
    data = ReportData.of(results)
    paper = PAPER.extension(data)
    data = replace(data, names=paper.names)
    texts = {"winners": winners_markdown(winners(paper.tables))}
    for table in (*paper.tables, *grid_tables(data, without=paper.grids, published=PAPER.published)):
        texts[table.key] = table_markdown(table)
        texts[f"{table.key} error"] = estimate_markdown(table)
    return {name: text.strip() for name, text in texts.items()}


def main() -> None:
    for name, text in texts(Results.read(RESULTS)).items():
        for page in PAGES:
            quote(name, text, page)
    with tempfile.TemporaryDirectory() as folder:
        report = build_report(RESULTS, folder, reference=PAPER)
        for file in report.figures:
            if file.stem in PICTURES and file.suffix == ".png":
                shutil.copy(file, IMAGES / file.name)
                print(f"wrote {IMAGES / file.name}")


if __name__ == "__main__":
    main()
