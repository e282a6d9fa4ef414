"""Put the tables of the committed contest where the documentation shows them.

A page has them between markers: `<!-- KEY -->` for a table of the report, such as contest-leaderboard.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from fedra.contest import CONTEST, contest_tables
from fedra.contest.reference import boards
from fedra.contest.tables import contest_names
from fedra.experiments import Results
from fedra.report import ReportData, build_report
from fedra.report.appearance import display_name
from fedra.report.formats.markdown import lines_markdown, table_markdown
from harness import quote

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results" / "contest"
VALIDATION = ROOT / "results" / "contest-validation"
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
IMAGES = ROOT / "docs" / "images"
PICTURES = ("contest-regret",)
SEARCH = "study-search"
# From this round on a run has learnt most of what it will; what it loses since then attackers took.
SETTLED = 50


def texts(results: Results) -> dict[str, str]:
    """Return what belongs between markers, by their names."""
    data = ReportData.of(results)
    found = {}
    for broken in (False, True):
        tables = contest_tables(data, broken=broken)
        found.update((board.key, board.markdown()) for board in boards(tables, broken=broken))
        found.update((table.key, table_markdown(table)) for table in tables)
    if SEARCH in set(results.cells["grid"]):
        found[f"contest-{SEARCH}"] = search_table(results)
    return {name: text.strip() for name, text in found.items()}


def committed() -> dict[str, str]:
    """Return the texts of all committed results; what only some rules were tried on has no part in the summaries."""
    validation = contest_tables(ReportData.of(Results.read(VALIDATION)))
    return texts(Results.read(RESULTS)) | {table.key: table_markdown(table).strip() for table in validation}


def search_table(results: Results) -> str:
    """Return what each rule keeps of attackers who search for longer: after the last round, and at its worst before."""
    cells = results.cells[(results.cells["grid"] == SEARCH) & (results.cells["status"] == "done")]
    curves = results.curves[results.curves["round"] >= SETTLED].merge(cells[["run", "rule", "seed"]], on="run")
    lines = []
    for rule, found in curves.groupby("rule", observed=True):
        by_seed = found.pivot(index="round", columns="seed", values="accuracy").sort_index()
        by_seed["mean"] = by_seed.mean(axis="columns")
        name = display_name(str(rule), contest_names())
        lines += [(name, str(seed), f"{curve.min():.1f}", f"{curve.iloc[-1]:.1f}") for seed, curve in by_seed.items()]
    return lines_markdown(("rule", "seed", f"least, from round {SETTLED} on", "after the last round"), lines)


def main() -> None:
    if not RESULTS.is_dir():
        print(f"there is no {RESULTS}; make it with make contest")
        return
    for name, text in committed().items():
        for page in PAGES:
            quote(name, text, page)
    with tempfile.TemporaryDirectory() as folder:
        for file in build_report(RESULTS, folder, reference=CONTEST).figures:
            if file.stem in PICTURES and file.suffix == ".png":
                shutil.copy(file, IMAGES / file.name)
                print(f"wrote {IMAGES / file.name}")


if __name__ == "__main__":
    main()
