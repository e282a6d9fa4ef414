"""Kernels and rules against their peers and the machine's limit, as ratios within one run."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from harness import ONE_THREAD, contest, machine, machine_line, peak_own_memory, table, write

os.environ.update(ONE_THREAD)

import argparse
import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from typing import Any
from unittest.mock import MagicMock

import numpy as np
from numba import njit

import fedra
from fedra import kernels
from fedra.kernels.wide import prefer_wide_vectors

CLIENTS, DIMENSION = 50, 1_000_000
MALICIOUS = 5


def peers() -> dict[str, Any]:
    """Import the peers; byzfl wants torchvision and seaborn for parts of it that are not measured here."""
    import scipy.spatial.distance
    import torch

    torch.set_num_threads(1)
    for name in ("torchvision", "torchvision.transforms", "torchvision.datasets", "seaborn"):
        try:
            __import__(name)
        except ImportError:
            sys.modules[name] = MagicMock()
    import byzfl

    return {"scipy": scipy.spatial.distance, "torch": torch, "byzfl": byzfl}


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nsz"})
def _roof(values: Any, anchors: Any, repetitions: int, one: Any) -> Any:
    """Subtract, take the absolute value and add, twelve times for each value loaded from first-level cache."""
    prefer_wide_vectors()
    a0, a1, a2, a3, a4, a5 = anchors[0], anchors[1], anchors[2], anchors[3], anchors[4], anchors[5]
    a6, a7, a8, a9, a10, a11 = anchors[6], anchors[7], anchors[8], anchors[9], anchors[10], anchors[11]
    total = np.float64(0.0)
    for _ in range(repetitions):
        zero = one - one
        s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = s8 = s9 = s10 = s11 = zero
        for k in range(values.shape[0]):
            x = values[k]
            s0 += abs(x - a0) * one
            s1 += abs(x - a1) * one
            s2 += abs(x - a2) * one
            s3 += abs(x - a3) * one
            s4 += abs(x - a4) * one
            s5 += abs(x - a5) * one
            s6 += abs(x - a6) * one
            s7 += abs(x - a7) * one
            s8 += abs(x - a8) * one
            s9 += abs(x - a9) * one
            s10 += abs(x - a10) * one
            s11 += abs(x - a11) * one
        a0 += one - one
        total += s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7 + s8 + s9 + s10 + s11
    return total


def roof(operations: int, threads: int) -> None:
    """Do this many subtract-abs-adds as fast as this machine does them, on so many threads."""
    from concurrent.futures import ThreadPoolExecutor

    values = np.random.default_rng(0).random(2048, dtype=np.float32)
    anchors = np.random.default_rng(1).random(12, dtype=np.float32)
    repetitions = operations // (len(values) * len(anchors) * threads)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda _: _roof(values, anchors, repetitions, np.float32(1)), range(threads)))


def speed(repetitions: int, *, avx2: bool = False) -> list[dict[str, Any]]:
    """Compare with peers; compiled for AVX2, only what sorts, which gains most from wider vectors."""
    found = peers()
    scipy_distance, torch, byzfl = found["scipy"], found["torch"], found["byzfl"]
    rng = np.random.default_rng(0)
    updates = rng.standard_normal((CLIENTS, DIMENSION), dtype=np.float32)
    rows = list(updates)
    quantities = np.maximum(1, rng.lognormal(np.log(20) - 4.5, 3, CLIENTS)).astype(int)
    tensor = torch.from_numpy(updates)
    measures = []

    def compare(
        label: str, ours: Callable[[], object], theirs: dict[str, tuple[Callable[[], object], float, float | None]]
    ) -> None:
        times = contest({"fedra": ours, **{name: run for name, (run, _, _) in theirs.items()}}, repetitions=repetitions)
        for name, (_, must, aim) in theirs.items():
            ratio = times[name]["median_s"] / times["fedra"]["median_s"]
            measures.append(
                {
                    "measure": f"{label} against {name}",
                    "value": ratio,
                    "shown": f"{ratio:.1f}x faster",
                    "must": f"{must:g}x",
                    "aim": "" if aim is None else f"{aim:g}x",
                    "met": ratio >= must,
                    "milliseconds": {"fedra": times["fedra"]["median_s"] * 1e3, name: times[name]["median_s"] * 1e3},
                    "times": {"fedra": times["fedra"], name: times[name]},
                }
            )
            print(f"{measures[-1]['measure']}: {measures[-1]['shown']}", flush=True)

    if not avx2:
        compare(
            "pairwise L1",
            lambda: fedra.pairwise_l1(updates, threads=1),
            {
                "scipy pdist": (lambda: scipy_distance.pdist(updates, "cityblock"), 7, 10),
                "torch pdist": (lambda: torch.pdist(tensor, p=1), 1.8, 2.5),
            },
        )
    for label, name, parameters, peer, must, aim in (
        ("multi-krum", "multi-krum", {"num_malicious": MALICIOUS}, byzfl.MultiKrum(f=MALICIOUS), 8, 12),
        ("median", "median", {}, byzfl.Median(), 10, 15),
        ("trimmed mean", "trimmed-mean", {"num_malicious": MALICIOUS}, byzfl.TrMean(f=MALICIOUS), 2.5, 4),
        ("rfa", "rfa", {}, byzfl.GeometricMedian(), 1.7, 4),
    ):
        if avx2 and name not in ("median", "trimmed-mean"):
            continue
        rule = fedra.make_rule(name, **parameters)
        compare(
            label,
            lambda rule=rule: rule(rows, quantities, threads=1),
            {f"byzfl {type(peer).__name__} (NumPy)": (lambda peer=peer: peer(updates), must, aim)},
        )
    plain = fedra.FedAvg()
    for rule, must, aim in ((fedra.FedRA(), 13, 8), (fedra.Truncate(), 10, 7)):
        if avx2 and rule.name == "fedra":
            continue
        times = contest(
            {
                rule.name: lambda rule=rule: rule(rows, quantities, threads=1),
                "fedavg": lambda: plain(rows, quantities, threads=1),
            },
            repetitions=2 * repetitions,
        )
        ratio = times[rule.name]["median_s"] / times["fedavg"]["median_s"]
        measures.append(
            {
                "measure": f"whole {type(rule).__name__} against whole FedAvg",
                "value": ratio,
                "shown": f"{ratio:.1f}x the time",
                "must": f"at most {must}x",
                "aim": f"{aim}x",
                "met": ratio <= must,
                "milliseconds": {name: values["median_s"] * 1e3 for name, values in times.items()},
                "times": times,
            }
        )
        print(f"{measures[-1]['measure']}: {measures[-1]['shown']}", flush=True)
    return measures


def speed_on_avx2() -> None:
    """In a process that compiles for AVX2: print the comparisons as JSON, after what they print themselves."""
    print(json.dumps(speed(int(os.environ["REPETITIONS"]), avx2=True)))


def many_clients() -> None:
    """In a process of its own: print Bulyan's seconds with 2,000 clients, multi-Krum's own memory with 10,000."""
    rng = np.random.default_rng(0)
    updates = rng.standard_normal((2000, 10_000), dtype=np.float32)
    rule = fedra.Bulyan()
    rule(updates[:50], np.ones(50))
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        rule(updates, np.ones(len(updates)))
        seconds.append(time.perf_counter() - started)
    updates = rng.standard_normal((10_000, 10_000), dtype=np.float32)
    fedra.MultiKrum()(updates[:50], np.ones(50))
    with peak_own_memory() as peak:
        started = time.perf_counter()
        fedra.MultiKrum()(updates, np.ones(len(updates)))
        long = time.perf_counter() - started
    print(json.dumps([sorted(seconds)[1], peak[0], long]))


def share_of_roof(repetitions: int) -> dict[str, Any]:
    clients, dimension = 200, 250_000
    updates = np.random.default_rng(0).standard_normal((clients, dimension), dtype=np.float32)
    pairs = clients * (clients - 1) // 2
    times = contest(
        {
            "pairwise L1": lambda: fedra.pairwise_l1(updates, threads=2),
            "roof": lambda: roof(pairs * dimension, 2),
        },
        repetitions=repetitions,
    )
    share = times["roof"]["median_s"] / times["pairwise L1"]["median_s"]
    return {
        "measure": "pairwise L1, n=200, two threads, share of the sub-abs-add roof",
        "value": share,
        "shown": f"{share:.0%}",
        "must": "55%",
        "aim": "75%",
        "met": share >= 0.55,
        "milliseconds": {name: values["median_s"] * 1e3 for name, values in times.items()},
        "times": times,
    }


def accuracy() -> list[dict[str, Any]]:
    from scipy.spatial.distance import pdist

    rng = np.random.default_rng(0)
    measures = []
    for label, kernel, metric, spreads, must in (
        ("pairwise L1", kernels.pairwise_l1, "cityblock", (1.0, 1e-2, 1e-4), 1e-7),
        ("squared L2", kernels.pairwise_squared_l2, "sqeuclidean", (1e-3,), 1e-6),
    ):
        worst = 0.0
        for spread in spreads:
            base = rng.standard_normal(100_000)
            updates = (base + spread * rng.standard_normal((20, 100_000))).astype(np.float32)
            exact = pdist(updates.astype(np.float64), metric)
            found = kernel(updates, threads=1)[np.triu_indices(20, k=1)]
            worst = max(worst, float(np.max(np.abs(found / exact - 1))))
        measures.append(
            {
                "measure": f"{label}, relative error against float64, spread/base down to {min(spreads):g}",
                "value": worst,
                "shown": f"{worst:.1e}",
                "must": f"{must:g}",
                "aim": "",
                "met": worst <= must,
            }
        )
    return measures


def memory_of_fedra() -> None:
    """In a process of its own: print FedRA's peak memory on a list of rows, as a share of them."""
    rng = np.random.default_rng(0)
    rows = [rng.standard_normal(DIMENSION, dtype=np.float32) for _ in range(CLIENTS)]
    quantities = np.full(CLIENTS, 20)
    fedra.FedRA()([row[:1000] for row in rows], quantities)
    with peak_own_memory() as peak:
        fedra.FedRA()(rows, quantities)
    print(json.dumps(peak[0] / (CLIENTS * DIMENSION * 4)))


def memory_of_median() -> None:
    """In a process of its own: print the own memory that the median of 50 memory-mapped rows of 2e7 takes, in bytes."""
    dimension = 20_000_000
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        rows = []
        part = rng.standard_normal(1_000_000, dtype=np.float32)
        for client in range(CLIENTS):
            row = np.memmap(Path(folder) / str(client), dtype=np.float32, mode="w+", shape=(dimension,))
            for start in range(0, dimension, len(part)):
                row[start : start + len(part)] = part * (1 + client + start / dimension)
            row.flush()
            rows.append(np.memmap(Path(folder) / str(client), dtype=np.float32, mode="r", shape=(dimension,)))
        fedra.Median()([row[:1000] for row in rows], np.ones(CLIENTS))
        with peak_own_memory() as peak:
            started = time.perf_counter()
            fedra.Median()(rows, np.ones(CLIENTS))
            seconds = time.perf_counter() - started
    print(json.dumps([peak[0], seconds]))


def apart(name: str, **environment: str) -> Any:
    """Run one part in a process of its own, and return what it printed last."""
    command = [sys.executable, __file__, "--only", name]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment})
    return json.loads(done.stdout.splitlines()[-1])


def avx2(repetitions: int) -> list[dict[str, Any]]:
    """Measure what sorts once more, all of it compiled for AVX2 and NumPy kept to it as well."""
    wide = "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR X86_V4"
    only = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "", "NPY_DISABLE_CPU_FEATURES": wide}
    measures = apart("speed_on_avx2", REPETITIONS=str(repetitions), **only)
    return [{**measure, "measure": f"{measure['measure']}, AVX2 only"} for measure in measures]


def large_rounds() -> list[dict[str, Any]]:
    seconds, peak, long = apart("many_clients")
    return [
        {
            "measure": "bulyan, n=2,000, d=1e4, all cores",
            "value": seconds,
            "shown": f"{seconds:.1f} s",
            "must": "5 s",
            "aim": "2 s",
            "met": seconds <= 5,
        },
        {
            "measure": "multi-krum, n=10,000, d=1e4, own memory",
            "value": peak,
            "shown": f"{peak / 1e9:.2f} GB in {long:.0f} s",
            "must": "2 GB",
            "aim": "0.5 GB",
            "met": peak <= 2e9,
        },
    ]


def memory() -> list[dict[str, Any]]:
    share = apart("memory_of_fedra")
    peak, seconds = apart("memory_of_median")
    return [
        {
            "measure": "extra peak memory of FedRA on a list of rows, as a share of them",
            "value": share,
            "shown": f"{share:.3f}",
            "must": "0.1",
            "aim": "0.02",
            "met": share <= 0.1,
        },
        {
            "measure": "median of 50 memory-mapped rows of 2e7 (4 GB), own memory",
            "value": peak,
            "shown": f"{peak / 1e6:.0f} MB in {seconds:.0f} s",
            "must": "500 MB",
            "aim": "",
            "met": peak <= 500e6,
        },
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=12)
    parser.add_argument(
        "--only",
        choices=["memory_of_fedra", "memory_of_median", "speed_on_avx2", "many_clients"],
        help=argparse.SUPPRESS,
    )
    arguments = parser.parse_args()
    if arguments.only:
        globals()[arguments.only]()
        return
    repetitions = arguments.repetitions
    measures = [
        *speed(repetitions),
        *avx2(repetitions),
        share_of_roof(repetitions),
        *large_rounds(),
        *accuracy(),
        *memory(),
    ]
    described = machine("fedra", "numpy", "numba", "scipy", "torch", "byzfl")
    shown = ("measure", "shown", "must", "aim")
    rows = [("measure", "fedra", "must", "aim"), *(tuple(measure[key] for key in shown) for measure in measures)]
    markdown = (
        f"{table(rows)}\n\nn = {CLIENTS} clients, d = 1e6, float32, one thread unless said; medians of "
        f"{arguments.repetitions} runs in random order; whole rules include screening. {machine_line(described)}."
    )
    print("\n" + markdown)
    write("kernels", {"machine": described, "measures": measures}, markdown)
    if not all(measure["met"] for measure in measures):
        sys.exit("a figure was not reached: " + "; ".join(m["measure"] for m in measures if not m["met"]))


if __name__ == "__main__":
    main()
