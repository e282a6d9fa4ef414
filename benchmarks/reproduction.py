"""Put the tables and pictures of the committed results where the documentation shows them.

A page has them between markers: `<!-- KEY -->` for a table of the report, `<!-- KEY error -->` for the mean error of
the estimated number of malicious clients in the same cells, `<!-- winners -->` for who wins.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from fedra.experiments import Results
from fedra.report import agreements, build_report, paper_tables, study_tables, winners
from fedra.report.runs import Runs
from fedra.report.text import measure_markdown, table_markdown, winners_markdown
from harness import quote

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results"
PAGES = (ROOT / "README.md", ROOT / "docs" / "reproduction.md", ROOT / "docs" / "security.md")
IMAGES = ROOT / "docs" / "images"
PICTURES = ("curves-table2-mnist", "figure6")


def texts(results: Results) -> dict[str, str]:
    """Return what belongs between markers, by their names."""
    runs = Runs(results=results)
    paper = paper_tables(results)
    found = winners(paper)
    texts = {"winners": winners_markdown(found, agreements(found))}
    for table in (*paper, *study_tables(results)):
        texts[table.key] = table_markdown(table, runs)
        texts[f"{table.key} error"] = measure_markdown(table, runs, "mean_abs_error_malicious", "Mean of |m~ - m|")
    return {name: text.strip() for name, text in texts.items()}


def main() -> None:
    for name, text in texts(Results.read(RESULTS)).items():
        for page in PAGES:
            quote(name, text, page)
    with tempfile.TemporaryDirectory() as folder:
        report = build_report(RESULTS, folder)
        for file in report.figures:
            if file.stem in PICTURES and file.suffix == ".png":
                shutil.copy(file, IMAGES / file.name)
                print(f"wrote {IMAGES / file.name}")


if __name__ == "__main__":
    main()
