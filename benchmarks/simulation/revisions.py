"""Rounds of FedRA under LIE at full quantities: two threads against one, and this tree against another revision.

    python benchmarks/simulation/revisions.py --data-dir DATA --before REV

Each contestant is a process that keeps its federation; they take turns of a few rounds, the same ones, and must come to
the same bits. Processor time is compared for one thread, wall time for two.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
from harness import ONE_THREAD, machine, machine_line, table, write

ROOT = Path(__file__).parents[2]
WARM_ROUNDS = 3
GAIN = 1.6
"""What two threads must be faster than one."""

Arm = tuple[str, int]


def serve(data_dir: str, threads: int) -> None:
    """Run as many rounds as each line of the input says; print processor time, wall time and the weights' digest."""
    import torch

    from fedra.simulation import Simulation, SimulationConfig

    torch.set_num_threads(threads)
    simulation = Simulation(
        SimulationConfig(
            dataset="mnist", data_dir=data_dir, rule="fedra", attack="lie", alpha_q=10.0, lr=1e-3,
            rounds=10**6, eval_every=100, threads=threads,
        )
    )  # fmt: skip
    state = simulation.initial_state()
    for _ in range(WARM_ROUNDS):
        state, _ = simulation.step(state)
    print("ready", flush=True)
    for line in sys.stdin:
        started = time.process_time(), time.perf_counter()
        for _ in range(int(line)):
            state, _ = simulation.step(state)
        spent = time.process_time() - started[0], time.perf_counter() - started[1]
        print(*spent, hashlib.sha256(state.weights.tobytes()).hexdigest(), flush=True)


def extracted(revision: str, folder: Path) -> Path:
    """Write a revision's files to a folder."""
    content = subprocess.run(
        ["git", "-C", str(ROOT), "archive", revision, "src"], check=True, capture_output=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(content)) as files:
        files.extractall(folder, filter="data")
    return folder


def started(stack: ExitStack, tree: Path, data_dir: str, threads: int) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, __file__, "--serve", str(threads), "--data-dir", data_dir],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, **ONE_THREAD, "PYTHONPATH": str(tree / "src")},
    )  # fmt: skip
    # Leaving closes the input, which ends the process.
    stack.enter_context(process)
    if process.stdout is None or process.stdout.readline().strip() != "ready":
        raise RuntimeError(f"{tree} with {threads} threads did not start")
    return process


def timed(data_dir: str, before: str, turns: int, rounds: int) -> dict[Arm, list[tuple[float, float]]]:
    """Return processor and wall seconds of each turn, for both revisions with one and two threads."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        trees = {"before": extracted(before, Path(folder)), "now": ROOT}
        arms = {
            (name, threads): started(stack, tree, data_dir, threads)
            for name, tree in trees.items()
            for threads in (1, 2)
        }
        spent: dict[Arm, list[tuple[float, float]]] = {arm: [] for arm in arms}
        for _ in range(turns):
            digests = set()
            for arm, process in arms.items():
                print(rounds, file=process.stdin, flush=True)
                processor, wall, digest = process.stdout.readline().split()  # type: ignore[union-attr]
                spent[arm].append((float(processor), float(wall)))
                digests.add(digest)
            if len(digests) > 1:
                raise ValueError(f"contestants came to {len(digests)} different models")
    return spent


def measures(spent: dict[Arm, list[tuple[float, float]]], before: str, rounds: int) -> list[dict[str, Any]]:
    def ratio(slower: Arm, faster: Arm, clock: int) -> float:
        return statistics.median(a[clock] / b[clock] for a, b in zip(spent[slower], spent[faster], strict=True))

    def rate(arm: Arm) -> float:
        return rounds * len(spent[arm]) / sum(wall for _, wall in spent[arm])

    gain = ratio(("now", 1), ("now", 2), 1)
    others = {
        f"two threads against one at {before}, wall time": ratio(("before", 1), ("before", 2), 1),
        f"one thread against {before}, processor time": ratio(("before", 1), ("now", 1), 0),
        f"two threads against {before}, wall time": ratio(("before", 2), ("now", 2), 1),
    }
    shown = f"{gain:.2f}x faster ({rate(('now', 2)):.1f} rounds/s, {rate(('now', 1)):.1f})"
    return [
        {"measure": "two threads against one, wall time", "value": gain, "shown": shown, "must": f"{GAIN:g}x",
         "met": gain >= GAIN},
        *({"measure": what, "value": value, "shown": f"{value:.2f}x", "must": "", "met": True}
          for what, value in others.items()),
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", default=os.environ.get("FEDRA_DATA"), help="folder that holds MNIST")
    parser.add_argument("--before", metavar="REV", default="HEAD", help="git revision to compare with")
    parser.add_argument("--turns", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=3, help="rounds in a turn")
    parser.add_argument("--serve", type=int, metavar="THREADS", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.data_dir is None:
        parser.error("where is MNIST? Give --data-dir or set FEDRA_DATA")
    if given.serve:
        serve(given.data_dir, given.serve)
        return
    spent = timed(given.data_dir, given.before, given.turns, given.rounds)
    found = measures(spent, given.before, given.rounds)
    described = machine("fedra", "numpy", "numba", "torch")
    rows = [("measure", "fedra", "must"), *((m["measure"], m["shown"], m["must"]) for m in found)]
    markdown = (
        f"{table(rows)}\n\nMNIST cut into 3,060 clients, nobody capped, 50 sampled a round, FedRA under LIE, the same "
        f"rounds and the same bits for all; medians of {given.turns} turns of {given.rounds} rounds. "
        f"{machine_line(described)}."
    )
    print(markdown)
    seconds = {f"{name}, threads {threads}": times for (name, threads), times in spent.items()}
    write("rounds", {"machine": described, "seconds_by_turn": seconds, "measures": found}, markdown)
    if not all(measure["met"] for measure in found):
        sys.exit("a figure was not reached: " + "; ".join(m["measure"] for m in found if not m["met"]))


if __name__ == "__main__":
    main()
