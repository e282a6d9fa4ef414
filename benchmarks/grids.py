"""What a second worker gains on a grid, and how long the report of the committed results takes."""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from harness import ONE_THREAD, machine, machine_line, table, write

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results"
WORKERS = (1, 2)

# Eight runs of the quick protocol's MNIST, a quarter as long: cheap rules and costly ones.
GRID = """
datasets = ["mnist"]
settings = ["fixed"]
attacks = ["label-flip", "lie"]
alpha_q = [10]
rules = ["fedavg", "multi-krum", "truncate", "fedra"]
fixed = { rounds = 60, eval_every = 30, lr = 1e-3, max_quantity = 512 }
"""


def fedra(*arguments: object, **environment: str) -> dict[str, Any]:
    """Run the command as a user would, and return the JSON it prints."""
    command = [str(Path(sys.executable).with_name("fedra")), *map(str, arguments), "--json"]
    environment = os.environ | ONE_THREAD | environment
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed


def grid_seconds(workers: int, data: Path) -> float:
    with tempfile.TemporaryDirectory() as folder:
        grid = Path(folder) / "scaling.toml"
        grid.write_text(GRID, encoding="utf-8")
        started = time.perf_counter()
        fedra("grid", grid, "--out", Path(folder) / "runs", "--workers", workers, FEDRA_DATA=str(data))
        return time.perf_counter() - started


def scaling(repetitions: int, data: Path) -> dict[int, list[float]]:
    """Return the seconds of the grid by number of workers, in an order drawn anew for each repetition."""
    taken: dict[int, list[float]] = {workers: [] for workers in WORKERS}
    order = random.Random(0)
    for _ in range(repetitions):
        for workers in order.sample(WORKERS, len(WORKERS)):
            taken[workers].append(grid_seconds(workers, data))
            print(f"{workers} workers: {taken[workers][-1]:.1f} s", flush=True)
    return taken


def report_of_results() -> dict[str, Any]:
    """Return how long `fedra report results` takes, of how many runs, and the size of its page."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        made = fedra("report", RESULTS, "--out", folder)
        seconds = time.perf_counter() - started
        return {"seconds": seconds, "runs": made["runs"]["done"], "page_bytes": Path(made["page"]).stat().st_size}


def measures(taken: dict[int, list[float]], report: dict[str, Any]) -> list[dict[str, Any]]:
    one, two = (statistics.median(taken[workers]) for workers in WORKERS)
    megabytes = report["page_bytes"] / 1e6
    return [
        {
            "measure": "eight MNIST runs of the quick protocol, two workers against one",
            "value": one / two,
            "shown": f"{one / two:.2f}x faster ({two:.0f} s, {one:.0f} s)",
            "must": "1.6x",
            "met": one / two >= 1.6,
        },
        {
            "measure": f"report of the {report['runs']} committed runs, tables, figures and page",
            "value": report["seconds"],
            "shown": f"{report['seconds']:.0f} s",
            "must": "60 s for 500",
            "met": report["runs"] >= 500 and report["seconds"] <= 60,
        },
        {
            "measure": "its page, all data sets",
            "value": megabytes,
            "shown": f"{megabytes:.1f} MB",
            "must": "5 MB",
            "met": megabytes <= 5,
        },
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--data-dir", type=Path, default=os.environ.get("FEDRA_DATA"), help="folder that holds MNIST")
    arguments = parser.parse_args()
    if arguments.data_dir is None:
        parser.error("where is MNIST? Give --data-dir or set FEDRA_DATA")
    taken = scaling(arguments.repetitions, arguments.data_dir)
    report = report_of_results()
    found = measures(taken, report)
    described = machine("fedra", "torch", "numpy", "pyarrow", "matplotlib")
    rows = [("measure", "fedra", "must"), *((m["measure"], m["shown"], m["must"]) for m in found)]
    markdown = (
        f"{table(rows)}\n\nWhole commands, start included; medians of {arguments.repetitions} in random order. "
        f"{machine_line(described)}."
    )
    print(markdown)
    write("grids", {"machine": described, "seconds_by_workers": taken, "report": report, "measures": found}, markdown)
    if not all(measure["met"] for measure in found):
        sys.exit("a figure was not reached: " + "; ".join(m["measure"] for m in found if not m["met"]))


if __name__ == "__main__":
    main()
