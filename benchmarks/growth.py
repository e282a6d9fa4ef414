"""Time and memory of rules as clients and values grow, large rounds, and a Ray cluster of one worker and of two."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from harness import machine, machine_line, peak_own_memory, quote, table, write
from scale import make_files, read_all

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "scale.md"
PICTURE = ROOT / "docs" / "images" / "scale.svg"
RULES = ("fedavg", "fedra", "multi-krum", "median", "rfa")
# Clients of a curve over values, and values of a curve over clients.
FIXED_CLIENTS, FIXED_VALUES = 50, 100_000
VALUES = (10_000, 100_000, 1_000_000, 10_000_000)
CLIENTS = (10, 30, 100, 300, 1000)
# Long enough for fixed costs not to count.
TENFOLD = {"d": ((50, 1_000_000), (50, 10_000_000), 10), "n": ((100, 100_000), (1000, 100_000), 100)}


def in_child(what: str, **arguments: Any) -> Any:
    """Measure in a process of its own."""
    command = [sys.executable, __file__, "--child", json.dumps({"what": what, **arguments})]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    print(f"{what} {arguments}: {done.stdout.strip()}", file=sys.stderr, flush=True)
    return json.loads(done.stdout)


def timed(call: Callable[[], object]) -> dict[str, float]:
    started, worked = time.perf_counter(), time.process_time()
    call()
    return {"seconds": time.perf_counter() - started, "cpu_seconds": time.process_time() - worked}


def rule_on(clients: int, values: int) -> Callable[[str], object]:
    """Return what runs a rule on a round of this size, with all that is compiled loaded."""
    import fedra

    rng = np.random.default_rng(0)
    common = rng.standard_normal(values, dtype=np.float32)
    rows = []
    for _ in range(clients):
        rows.append(rng.standard_normal(values, dtype=np.float32))
        rows[-1] += common
    quantities = [100 + place % 50 for place in range(clients)]

    def run(name: str, length: int = values) -> object:
        return fedra.make_rule(name)([row[:length] for row in rows], quantities)

    # Short rounds and long ones run through different loops.
    for name, length in itertools.product(RULES, (1000, 5000)):
        run(name, min(length, values))
    return run


def size(clients: int, values: int, repetitions: int) -> dict[str, dict[str, float]]:
    """Return for each rule its least time of several, rules taking turns, and the most memory that it took."""
    from fedra.server.vectors import give_back

    run = rule_on(clients, values)
    found: dict[str, list[dict[str, float]]] = {name: [] for name in RULES}
    order = random.Random(0)
    for _ in range(repetitions):
        for name in order.sample(RULES, len(RULES)):
            # Else what one left behind would be there for the next.
            give_back()
            with peak_own_memory() as peak:
                taken = timed(lambda name=name: run(name))  # type: ignore[misc]
            found[name].append({**taken, "memory": peak[0]})
    return {
        name: {key: (max if key == "memory" else min)(run[key] for run in runs) for key in runs[0]}
        for name, runs in found.items()
    }


def large(rule: str, clients: int, values: int) -> dict[str, float]:
    """Return time and own memory of one rule on one large round."""
    import fedra

    rng = np.random.default_rng(0)
    rows = rng.standard_normal((clients, values), dtype=np.float32)
    chosen = fedra.make_rule(rule)
    chosen(rows[:30, :5000], [10] * 30)
    with peak_own_memory() as peak:
        taken = timed(lambda: chosen(rows, [100 + place % 50 for place in range(clients)]))
    return {**taken, "memory": peak[0]}


def on_ray(paths: list[str], repetitions: int) -> dict[str, list[float]]:
    """Return the times of FedRA on files with one worker and with two, in turns, and in this process."""
    import ray
    from ray.cluster_utils import Cluster

    import fedra
    from fedra.cluster import RayWorkers
    from fedra.updates.aggregation import aggregate

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # As nice as the threads beside them; Ray has its workers step back for everybody else.
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112  # Ray spells it so
    files = [Path(path) for path in paths]
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    ray.init(address=nodes.address, log_to_driver=False, configure_logging=False)
    found: dict[str, list[float]] = {}

    def once(workers: int, threads: int | None) -> float:
        with RayWorkers(workers=max(1, workers)) as elsewhere:
            started = time.perf_counter()
            aggregate(
                files, [100 + place for place in range(len(files))],
                rule=fedra.FedRA(), out=files[0].parent / "out.safetensors", checksums=False,
                threads=threads, elsewhere=elsewhere if workers else None,
            )  # fmt: skip
            return time.perf_counter() - started

    contestants = {"1 worker": (1, None), "2 workers": (2, None), "1 thread": (0, 1), "2 threads": (0, 2)}
    order = random.Random(0)
    for repetition in range(repetitions + 1):
        for name in order.sample(list(contestants), len(contestants)):
            read_all(files)
            taken = once(*contestants[name])
            # The first time processes begin, and load what is compiled.
            if repetition:
                found.setdefault(name, []).append(taken)
            print(f"{name}: {taken:.2f} s", file=sys.stderr, flush=True)
    ray.shutdown()
    nodes.shutdown()
    return found


CHILDREN: dict[str, Callable[..., Any]] = {"size": size, "large": large, "ray": on_ray}


def draw(points: dict[tuple[int, int], dict[str, dict[str, float]]]) -> None:
    """Draw time and memory against values and clients."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "fedra"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, 2, figsize=(9, 6.4), sharex="col", layout="constrained")
    curves = (
        (f"values of an update, {FIXED_CLIENTS} clients", [(FIXED_CLIENTS, values) for values in VALUES], 1),
        (f"clients, {FIXED_VALUES:,} values each", [(clients, FIXED_VALUES) for clients in CLIENTS], 0),
    )
    for column, (label, sizes, along) in enumerate(curves):
        x = [one[along] for one in sizes]
        for name in RULES:
            axes[0, column].plot(x, [points[one][name]["seconds"] for one in sizes], marker="o", ms=3, label=name)
            memory = [max(points[one][name]["memory"], 1e5) / 1e6 for one in sizes]
            axes[1, column].plot(x, memory, marker="o", ms=3)
        rows = [clients * values * 4 / 1e6 for clients, values in sizes]
        axes[1, column].plot(x, rows, color="gray", ls=":", label="the updates themselves")
        axes[1, column].set_xlabel(label)
        for row in axes[:, column]:
            row.set(xscale="log", yscale="log")
            row.grid(alpha=0.3)
    axes[0, 0].set_ylabel("seconds")
    axes[1, 0].set_ylabel("MB beyond the updates")
    axes[0, 0].legend()
    axes[1, 0].legend()
    figure.savefig(PICTURE, metadata={"Date": None})


def growth(points: dict[tuple[int, int], dict[str, dict[str, float]]]) -> dict[str, dict[str, float]]:
    """Return by how much the cost of an element, or of a pair's element, grows where values or clients grow tenfold."""
    return {
        name: {
            along: points[after][name]["cpu_seconds"] / points[before][name]["cpu_seconds"] / factor
            for along, (before, after, factor) in TENFOLD.items()
        }
        for name in ("fedra", "multi-krum")
    }


def measured(
    bulyan: dict[str, float],
    ten_thousand: dict[str, float],
    ray: dict[str, float],
    grown: dict[str, dict[str, float]],
    dimension: float,
) -> list[tuple[str, str, str, bool]]:
    """Return the figures: what, how much, what it must be, and whether it is."""

    def gain(one: str, two: str) -> str:
        return f"{ray[one] / ray[two]:.2f}x faster ({ray[two]:.1f} s, {ray[one]:.1f} s)"

    memory = f"{ten_thousand['memory'] / 1e9:.2f} GB in {ten_thousand['seconds']:.0f} s"
    files = f"FedRA on 10 files of {dimension:.0e} values"
    found = [
        ("FedRA, n=10,000, d=1e4: own memory", memory, "2 GB", ten_thousand["memory"] <= 2e9),
        ("bulyan, n=2,000, d=1e4", f"{bulyan['seconds']:.1f} s", "5 s", bulyan["seconds"] <= 5),
        (f"{files}, Ray: two workers against one", gain("1 worker", "2 workers"), "1.6x",
         ray["1 worker"] / ray["2 workers"] >= 1.6),
        (f"{files}, without Ray: two threads against one", gain("1 thread", "2 threads"), "", True),
    ]  # fmt: skip
    for name, by in grown.items():
        for along, what in (("d", "d"), ("n", "n, for each pair,")):
            measure = f"{name}: cost of an element as {what} grows tenfold"
            found.append((measure, f"{by[along]:.2f} times", "within 15%", abs(by[along] - 1) <= 0.15))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--ray-dimension", type=float, default=1e8, help="values of each of the 10 files for Ray")
    parser.add_argument("--folder", type=Path, help="where to write the files; default: a temporary folder")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        wanted = json.loads(arguments.child)
        print(json.dumps(CHILDREN[wanted.pop("what")](**wanted)))
        return
    sizes = {(FIXED_CLIENTS, values) for values in VALUES} | {(clients, FIXED_VALUES) for clients in CLIENTS}
    points = {
        one: in_child("size", clients=one[0], values=one[1], repetitions=arguments.repetitions)
        for one in sorted(sizes, key=lambda one: one[0] * one[1])
    }
    bulyan = in_child("large", rule="bulyan", clients=2000, values=10_000)
    ten_thousand = in_child("large", rule="fedra", clients=10_000, values=10_000)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        paths = make_files(Path(folder), 10, int(arguments.ray_dimension))
        ray = in_child("ray", paths=list(map(str, paths)), repetitions=arguments.repetitions)
    least = {name: min(times) for name, times in ray.items()}
    grown = growth(points)
    draw(points)
    described = machine("fedra", "numpy", "numba", "ray")
    measures = measured(bulyan, ten_thousand, least, grown, arguments.ray_dimension)
    busy = os.getloadavg()[0]
    shown = table([("measure", "fedra", "must"), *(measure[:3] for measure in measures)])
    markdown = (
        f"{shown}\n\nfloat32, all cores, screening included; the least of {arguments.repetitions} in random order. "
        "Growth is in processor time: d from 1e6 to 1e7 with 50 clients, n from 100 to 1,000 with 100,000 values. "
        "Ray's workers read files from the system's cache, and share this machine's cores with the driver. "
        f"Load of the machine at the end: {busy:.1f}. {machine_line(described)}."
    )
    print(markdown)
    result = {
        "machine": described,
        "points": [{"clients": one[0], "values": one[1], "rules": found} for one, found in points.items()],
        "large": {"bulyan": bulyan, "fedra": ten_thousand}, "ray": ray, "growth": grown, "load": busy,
    }  # fmt: skip
    write("growth", result, markdown)
    quote("growth", (ROOT / "benchmarks" / "results" / "growth.md").read_text().strip(), PAGE)
    if missed := [measure[0] for measure in measures if not measure[3]]:
        sys.exit("a figure was not reached: " + "; ".join(missed))


if __name__ == "__main__":
    main()
