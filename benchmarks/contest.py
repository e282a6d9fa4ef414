"""Put the tables of the committed contest where the documentation shows them.

A page has them between markers: `<!-- KEY -->` for a table of the report, such as contest-leaderboard.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from fedra.contest import CONTEST, contest_tables
from fedra.contest.reference import boards
from fedra.experiments import Results
from fedra.report import ReportData, build_report
from fedra.report.formats.markdown import table_markdown
from harness import quote

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results" / "contest"
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
IMAGES = ROOT / "docs" / "images"
PICTURES = ("contest-regret",)


def texts(results: Results) -> dict[str, str]:
    """Return what belongs between markers, by their names."""
    data = ReportData.of(results)
    found = {}
    for broken in (False, True):
        tables = contest_tables(data, broken=broken)
        found.update((board.key, board.markdown()) for board in boards(tables, broken=broken))
        found.update((table.key, table_markdown(table)) for table in tables)
    return {name: text.strip() for name, text in found.items()}


def main() -> None:
    if not RESULTS.is_dir():
        print(f"there is no {RESULTS}; make it with make contest")
        return
    for name, text in texts(Results.read(RESULTS)).items():
        for page in PAGES:
            quote(name, text, page)
    with tempfile.TemporaryDirectory() as folder:
        for file in build_report(RESULTS, folder, reference=CONTEST).figures:
            if file.stem in PICTURES and file.suffix == ".png":
                shutil.copy(file, IMAGES / file.name)
                print(f"wrote {IMAGES / file.name}")


if __name__ == "__main__":
    main()
