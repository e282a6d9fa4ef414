"""Put the tables of federations whose clients are real, from results/federations, where their page shows them.

The page has them between markers, `<!-- KEY -->` for a table of the report. Where there are two classes the figure is
the AUC: three of four flights are on time, and accuracy hardly moves when a model says so of all of them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from fedra.experiments import Results
from fedra.report import ReportData, grid_tables
from fedra.report.appearance import DISPLAY_NAMES
from fedra.report.formats.markdown import table_markdown
from harness import quote

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results" / "federations"
PAGE = ROOT / "docs" / "real-federations.md"
_NAMES = {**DISPLAY_NAMES, "fedra-printed": "FedRA as printed", "fedavg": "FedAdam"}
_ACCURACY, _AUC = "Accuracy after the last round in percent.", "100 times the AUC after the last round."


def texts(results: Results) -> dict[str, str]:
    """Return what belongs between markers, by their names."""
    cells = results.cells
    ranked = cells["auc"].notna()
    by_auc = replace(
        results, cells=cells.assign(final_accuracy=cells["final_accuracy"].where(~ranked, 100 * cells["auc"]))
    )
    with_auc = set(cells.loc[ranked, "dataset"])
    found = {}
    for table in grid_tables(replace(ReportData.of(by_auc), names=_NAMES)):
        caption = table.caption.replace(_ACCURACY, _AUC) if table.dataset in with_auc else table.caption
        found[table.key] = table_markdown(replace(table, caption=caption)).strip()
    return found


def main() -> None:
    if not RESULTS.is_dir():
        print(f"there is no {RESULTS}; make it with fedra grid benchmarks/federations.toml")
        return
    for name, text in texts(Results.read(RESULTS)).items():
        quote(name, text, PAGE)


if __name__ == "__main__":
    main()
