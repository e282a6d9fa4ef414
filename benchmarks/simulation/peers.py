"""The simulation against pfl and Flower, FedRA's share of a round, and peak memory; one command, one table."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from harness import ONE_THREAD, machine, machine_line, table, write

os.environ.update(ONE_THREAD)

import argparse
import json
import random
import statistics
import subprocess
import tempfile
import venv
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from rounds import export

HERE = Path(__file__).parent
PROJECT = HERE.parent.parent
PEER_ENVIRONMENT = PROJECT / ".venv-bench"
PFL = "0.6.0"
OFFLINE = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1", "RAY_USAGE_STATS_ENABLED": "0"}

Measure = dict[str, Any]


def pfl_python() -> Path:
    """Return a Python that has pfl and what the models need here, made where it is not there yet."""
    python = PEER_ENVIRONMENT / "bin" / "python"
    wanted = {name: version(name).split("+")[0] for name in ("torch", "numpy", "numba")} | {"pfl": PFL}
    ready = PEER_ENVIRONMENT / "ready.json"
    if not ready.exists() or json.loads(ready.read_text()) != wanted:
        print(f"installing pfl {PFL} into {PEER_ENVIRONMENT.name}", flush=True)
        venv.create(PEER_ENVIRONMENT, with_pip=True, clear=True)
        (PEER_ENVIRONMENT / ".gitignore").write_text("*\n")
        requirements = [f"{name}=={number}" for name, number in wanted.items()]
        subprocess.run([python, "-m", "pip", "install", "--quiet", *requirements], check=True)
        ready.write_text(json.dumps(wanted))
    return python


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Where rounds were exported to, and how contestants are run: each in a process of its own."""

    folder: Path
    data_dir: str | None
    exported: dict[str, Any]
    repetitions: int

    def run(self, script: str, *arguments: str, python: str | Path = sys.executable) -> dict[str, Any]:
        out = self.folder / "out.json"
        paths = [str(PROJECT / "src"), str(HERE)]
        environment = {**os.environ, **OFFLINE, "FLWR_HOME": str(self.folder), "PYTHONPATH": os.pathsep.join(paths)}
        command = [str(python), str(HERE / script), *arguments, str(out)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{script} failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
        found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
        out.unlink()
        return found

    def own(self, *arguments: str, rounds: int | None = None) -> dict[str, Any]:
        data = ["--data-dir", self.data_dir] if self.data_dir else []
        count = len(self.exported["samples"]) if rounds is None else rounds
        return self.run("rounds.py", "--rounds", str(count), *data, *arguments)

    @property
    def counted_samples(self) -> int:
        """Samples of all rounds but the first, which warms up and is not counted."""
        return sum(self.exported["samples"][1:])

    def contest(self, contestants: dict[str, Callable[[], dict[str, Any]]]) -> dict[str, dict[str, Any]]:
        """Run all contestants in an order drawn anew for each repetition; medians of their total times."""
        runs: dict[str, list[dict[str, Any]]] = {name: [] for name in contestants}
        order = random.Random(0)
        for _ in range(self.repetitions):
            for name in order.sample(list(contestants), len(contestants)):
                runs[name].append(contestants[name]())
        clocks = ("seconds", "processor_seconds")
        return {
            name: {clock: statistics.median(sum(run[clock][1:]) for run in found) for clock in clocks}
            for name, found in runs.items()
        }


def share_of_fedra(bench: Bench) -> list[Measure]:
    measures = []
    for model in ("80k", "580k"):
        runs = [bench.own("--rule", "fedra", "--model", model, rounds=40) for _ in range(min(3, bench.repetitions))]
        shares = [sum(run["rule_processor_seconds"][1:]) / sum(run["processor_seconds"][1:]) for run in runs]
        typical = [
            statistics.median(
                rule / whole
                for rule, whole in zip(run["rule_processor_seconds"][1:], run["processor_seconds"][1:], strict=True)
            )
            for run in runs
        ]
        share, samples = statistics.median(shares), statistics.mean(runs[0]["samples"][1:])
        measures.append(
            {
                "measure": f"FedRA's share of the rounds, d = {runs[0]['dimension']:,}, {samples:.0f} samples a round",
                "value": share,
                "shown": f"{share:.1%}",
                "must": "at most 15%",
                "aim": "8%",
                "met": share <= 0.15,
                "median_round": statistics.median(typical),
                "rule_milliseconds": statistics.median(
                    statistics.median(run["rule_processor_seconds"][1:]) * 1e3 for run in runs
                ),
            }
        )
    return measures


def against_pfl(bench: Bench) -> list[Measure]:
    python = pfl_python()
    folder = str(bench.folder)
    times = bench.contest(
        {
            "fedra": bench.own,
            "fedra, FedRA instead of FedAvg": lambda: bench.own("--rule", "fedra"),
            "pfl": lambda: bench.run("pfl_rounds.py", folder, python=python),
            "pfl, channels last": lambda: bench.run("pfl_rounds.py", folder, "--channels-last", python=python),
        }
    )
    gain = times["pfl"]["seconds"] / times["fedra"]["seconds"]
    tuned = times["pfl, channels last"]["seconds"] / times["fedra"]["seconds"]
    own = times["fedra"]["seconds"] / bench.counted_samples
    return [
        {
            "measure": f"per sample against pfl {PFL} (given channels-last by hand: {tuned:.1f}x)",
            "value": gain,
            "shown": f"{gain:.1f}x faster ({own * 1e3:.2f} ms)",
            "must": "1.8x",
            "aim": "3x",
            "met": gain >= 1.8,
            "milliseconds_per_sample": {
                name: {clock: value / bench.counted_samples * 1e3 for clock, value in clocks.items()}
                for name, clocks in times.items()
            },
        }
    ]


def against_flower(bench: Bench) -> list[Measure]:
    # Flower once, between runs of ours: it takes most of a minute to start.
    own = [bench.own()]
    flower = bench.run("flower_rounds.py", str(bench.folder))["seconds"]
    own.append(bench.own())
    rounds = len(flower) - 1
    speed = rounds / statistics.mean(sum(run["seconds"][1:]) for run in own)
    peer = rounds / sum(flower[1:])
    cores = len(os.sched_getaffinity(0))
    return [
        {
            "measure": f"rounds/s against Flower {version('flwr')} on Ray (it on {cores} cores, fedra on one)",
            "value": speed / peer,
            "shown": f"{speed / peer:.1f}x ({speed:.1f} against {peer:.2f})",
            "must": "5x",
            "aim": "10x",
            "met": speed / peer >= 5,
            "seconds": {"fedra": [run["seconds"] for run in own], "flower": flower},
        }
    ]


def peak_memory(bench: Bench) -> list[Measure]:
    found = bench.own("--memory")
    gigabytes = found["peak_bytes"] / 1e9
    return [
        {
            "measure": f"peak memory of a run, full quantities, largest client {found['largest_client']:,} samples",
            "value": gigabytes,
            "shown": f"{gigabytes:.2f} GB",
            "must": "2 GB",
            "aim": "1 GB",
            "met": gigabytes < 2,
            "run": found,
        }
    ]


def gradients(bench: Bench) -> list[Measure]:
    """Take the figures of gradients.py, which fails where one is missed: that is told at the end, with the others."""
    out = bench.folder / "gradients.json"
    done = subprocess.run([sys.executable, str(HERE / "gradients.py"), "--json", str(out)], stdout=subprocess.DEVNULL)
    if not out.exists():
        raise RuntimeError(f"gradients.py ended with {done.returncode} and wrote no figures")
    measures: list[Measure] = json.loads(out.read_text(encoding="utf-8"))["measures"]
    return measures


PARTS = {
    "gradients": gradients,
    "share": share_of_fedra,
    "pfl": against_pfl,
    "flower": against_flower,
    "memory": peak_memory,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", default=os.environ.get("FEDRA_DATA"), help="where MNIST is; default FEDRA_DATA")
    parser.add_argument("--rounds", type=int, default=20, help="rounds for pfl and Flower, the first not counted")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--only", choices=list(PARTS), help="print one part, and leave benchmarks/results alone")
    arguments = parser.parse_args()
    measures: list[Measure] = []
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(
            folder=Path(folder),
            data_dir=arguments.data_dir,
            exported=export(Path(folder), arguments.data_dir, arguments.rounds),
            repetitions=arguments.repetitions,
        )
        for part in [arguments.only] if arguments.only else PARTS:
            for found in PARTS[part](bench):
                measures.append(found)
                print(f"{found['measure']}: {found['shown']}", flush=True)
    described = machine("fedra", "numpy", "numba", "torch", "flwr", "ray")
    described["versions"]["pfl"] = PFL
    data = "MNIST" if arguments.data_dir else "Synthetic data of MNIST's shape (no --data-dir was given)"
    rows = [("measure", "fedra", "must", "aim")]
    rows += [(one["measure"], one["shown"], one["must"], one["aim"]) for one in measures]
    markdown = (
        f"{table(rows)}\n\n{data} cut into {bench.exported['num_clients']:,} clients with log-normal quantities, "
        f"nobody capped, 50 sampled a round, one full-batch gradient each; all run the same clients in the same "
        f"rounds. One process and one thread unless said; medians of {arguments.repetitions} runs in random order, "
        f"Flower once. Shares are of processor time. {machine_line(described)}."
    )
    print("\n" + markdown)
    if not arguments.only:
        write("simulation", {"machine": described, "data": bench.exported["data"], "measures": measures}, markdown)
    missed = [one["measure"] for one in measures if not one["met"]]
    if missed:
        sys.exit("a figure was not reached: " + "; ".join(missed))


if __name__ == "__main__":
    main()
