"""Put the table of few silos, from results/silos, between the `<!-- silos -->` markers of its page."""

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
_NAMES = {"fedra-printed": "FedRA as printed", "fedavg": "FedAdam"}


def table(results: Results) -> str:
    """Return the least accuracy of any attack, for each rule, by silos, attackers and assumed ratio."""
    cells = results.cells.dropna(subset=["final_accuracy"])
    found = cells["dataset"].str.extract(r"\((\d+) silos, ([0-9.]+) assumed\)")
    cells = cells.assign(
        silos=found[0].astype(int),
        assumed=found[1].astype(float),
        attackers=[_attackers(label) for label in cells["attack"]],
    )
    worst = cells.groupby(["silos", "assumed", "attackers", "rule"])["final_accuracy"].min().unstack("rule")
    worst = worst[list(dict.fromkeys(cells["rule"]))]
    names = [_NAMES.get(str(rule), display_name(str(rule))) for rule in worst.columns]
    lines = [f"| silos | assumed | attackers | {' | '.join(names)} |", f"|---:|---:|---:|{'---:|' * len(names)}"]
    for place, row in worst.iterrows():
        silos, assumed, attackers = place  # type: ignore[misc]
        best = row.max()
        values = ["-" if pd.isna(value) else f"**{value:.1f}**" if value == best else f"{value:.1f}" for value in row]
        lines.append(f"| {silos} | {assumed:g} | {attackers} | {' | '.join(values)} |")
    return "\n".join(lines)


def _attackers(label: str) -> int:
    found = re.search(r", (\d+)$", label)
    return int(found[1]) if found else 0


def main() -> None:
    quote("silos", table(Results.read(RESULTS)), PAGE)


if __name__ == "__main__":
    main()
