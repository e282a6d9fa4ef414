"""Put the tables of few silos, from results/silos, between the markers of their page: one for each grid, by its name.

Digits cut into silos are compared by accuracy, flights by carrier by AUC, since accuracy stays where it was when a
model calls every flight punctual.
"""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd

from fedra.experiments import Results
from fedra.report.appearance import display_name
from harness import quote

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results" / "silos"
PAGE = ROOT / "docs" / "federations.md"
GRIDS = ("silos", "silos-carriers")
_NAMES = {"fedra-printed": "FedRA as printed", "fedavg": "FedAdam"}


def table(results: Results, grid: str) -> str:
    """Return what the worse attack leaves of each rule, by silos, attackers and assumed ratio."""
    cells = results.cells[results.cells["grid"] == grid].dropna(subset=["final_accuracy"])
    found = cells["dataset"].str.extract(r"\((\d+) \w+, ([0-9.]+) assumed\)")
    ranked = bool(cells["auc"].notna().all())
    cells = cells.assign(
        silos=found[0].astype(int),
        assumed=found[1].astype(float),
        attackers=[_attackers(label) for label in cells["attack"]],
        figure=cells["auc"] if ranked else cells["final_accuracy"],
    )
    place = ["silos", "assumed", "attackers"]
    worst = cells.loc[cells.groupby([*place, "rule"])["figure"].idxmin()]
    figures = worst.pivot(index=place, columns="rule", values="figure")[list(dict.fromkeys(cells["rule"]))]
    accuracies = worst.pivot(index=place, columns="rule", values="final_accuracy")
    shape = ".3f" if ranked else ".1f"
    names = [_NAMES.get(str(rule), display_name(str(rule))) for rule in figures.columns]
    lines = [f"| silos | assumed | attackers | {' | '.join(names)} |", f"|---:|---:|---:|{'---:|' * len(names)}"]
    for at, row in figures.iterrows():
        silos, assumed, attackers = at  # type: ignore[misc]
        best = format(row.max(), shape)
        values = []
        for rule, value in row.items():
            shown = "-" if pd.isna(value) else format(value, shape)
            also = f" ({accuracies.loc[at, rule]:.1f})" if ranked else ""
            values.append(f"**{shown}**{also}" if shown == best else f"{shown}{also}")
        lines.append(f"| {silos} | {assumed:g} | {attackers} | {' | '.join(values)} |")
    return "\n".join(lines)


def _attackers(label: str) -> str:
    """Return how many attack, or which: what stands after the comma of an attack's label."""
    found = re.search(r", ([\w ]+)$", label)
    return found[1] if found else "0"


def main() -> None:
    results = Results.read(RESULTS)
    for grid in GRIDS:
        quote(grid, table(results, grid), PAGE)


if __name__ == "__main__":
    main()
