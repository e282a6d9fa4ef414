"""How fast rules aggregate files against reading those files, and how much memory that takes."""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from harness import machine, machine_line, memory_now, quote, table, write

PAGE = Path(__file__).resolve().parents[1] / "docs" / "scale.md"
BUFFER = 4 << 20
THREADS = len(os.sched_getaffinity(0))


def forget(paths: list[Path]) -> None:
    """Drop files from the system's cache, as if they were larger than memory."""
    for path in paths:
        handle = os.open(path, os.O_RDONLY)
        os.fsync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(handle)


def read_all(paths: list[Path], *, cold: bool = False) -> None:
    def read(path: Path) -> None:
        buffer = bytearray(BUFFER)
        handle = os.open(path, os.O_RDONLY)
        place = 0
        while count := os.preadv(handle, [buffer], place):
            place += count
            if cold:
                # As fedra does: the disk is busy with what comes next.
                os.posix_fadvise(handle, place, 4 * BUFFER, os.POSIX_FADV_WILLNEED)
        os.close(handle)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(read, paths))


def read_twice(paths: list[Path], *, cold: bool) -> float:
    started = time.perf_counter()
    for _ in range(2):
        if cold:
            forget(paths)
        read_all(paths, cold=cold)
    return time.perf_counter() - started


def make_files(folder: Path, clients: int, dimension: int) -> list[Path]:
    """Write updates of random values around a common one, a part at a time."""
    from fedra.updates.safetensors_header import make_header
    from fedra.updates.tensors import KINDS

    rng = np.random.default_rng(0)
    paths = [folder / f"client{place}.safetensors" for place in range(clients)]
    header = make_header([("weights", KINDS["F32"], (dimension,))])
    files = [path.open("wb") for path in paths]
    for file in files:
        file.write(header)
    for first in range(0, dimension, 1 << 20):
        common = rng.standard_normal(min(1 << 20, dimension - first), dtype=np.float32)
        for file in files:
            file.write((common + rng.standard_normal(common.size, dtype=np.float32)).data)
    for file in files:
        file.close()
    return paths


def child(paths: list[Path], rule: str, *, cold: bool, checksums: bool) -> dict[str, float]:
    """Aggregate in a process of its own; return the seconds of the call, and the process's peak memory."""
    arguments = json.dumps({"paths": list(map(str, paths)), "rule": rule, "cold": cold, "checksums": checksums})
    command = [sys.executable, __file__, "--child", arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def run_child(arguments: dict[str, Any]) -> None:
    import fedra
    from fedra.updates.aggregation import aggregate

    paths, cold = [Path(path) for path in arguments["paths"]], arguments["cold"]
    rule = fedra.make_rule(arguments["rule"])
    count = len(paths)
    # Compiled code is loaded before, as in any process that aggregates more than once.
    rule(np.random.default_rng(0).standard_normal((count, 5000)).astype(np.float32), [10] * count)
    passes: set[int] = set()

    def progress(number: int, done: int, of: int) -> None:
        if number not in passes:
            passes.add(number)
            if cold and number > 1:
                # What a pass left in the cache would not be there if files were larger than memory.
                forget(paths)

    if cold:
        forget(paths)
    before = memory_now("VmHWM")
    started, worked = time.perf_counter(), time.process_time()
    aggregate(
        paths, [100 + place for place in range(count)],
        rule=rule, out=paths[0].parent / "out.safetensors", checksums=arguments["checksums"], progress=progress,
    )  # fmt: skip
    found = {"seconds": time.perf_counter() - started, "cpu_seconds": time.process_time() - worked}
    print(json.dumps({**found, "peak": memory_now("VmHWM"), "before": before, "passes": len(passes)}))


def contest(paths: list[Path], repetitions: int) -> dict[str, list[dict[str, float]]]:
    """Time FedRA and reading in turns, in an order drawn anew for each repetition."""
    contestants = {
        f"{what}, {state}": (what, state == "from disk")
        for what in ("read twice", "fedra", "fedra with checksums")
        for state in ("from disk", "from the cache")
    }
    found: dict[str, list[dict[str, float]]] = {name: [] for name in contestants}
    order = random.Random(0)
    for _ in range(repetitions):
        for name in order.sample(list(contestants), len(contestants)):
            what, cold = contestants[name]
            if not cold:
                read_all(paths)
            if what == "read twice":
                found[name].append({"seconds": read_twice(paths, cold=cold)})
            else:
                found[name].append(child(paths, "fedra", cold=cold, checksums="checksums" in what))
            print(f"{name}: {found[name][-1]['seconds']:.2f} s", file=sys.stderr, flush=True)
    return found


def every_rule(paths: list[Path], size: int) -> list[dict[str, Any]]:
    """Return what each rule takes of the processors, which does not depend on the disk, and of memory."""
    from fedra import RULES

    found = []
    for rule in RULES:
        taken = child(paths, rule, cold=False, checksums=False)
        found.append({"rule": rule, "cpu_seconds_per_gb": taken["cpu_seconds"] / size * 1e9, **taken})
        print(f"{rule}: {taken['seconds']:.2f} s", file=sys.stderr, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument(
        "--dimension", type=float, default=4e7, help="values of an update; 4e8 makes 16 GB of 10 clients"
    )
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where to write the files; default: a temporary folder")
    parser.add_argument("--fedra-only", action="store_true", help="not every rule; the result is named scalelarge")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        run_child(json.loads(arguments.child))
        return
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        paths = make_files(Path(folder), arguments.clients, int(arguments.dimension))
        size = sum(path.stat().st_size for path in paths)
        times = contest(paths, arguments.repetitions)
        least = {name: min(run["seconds"] for run in runs) for name, runs in times.items()}
        rules = [] if arguments.fedra_only else every_rule(paths, size)
    share = {
        state: least[f"read twice, {state}"] / least[f"fedra, {state}"] for state in ("from disk", "from the cache")
    }
    peak = max(run["peak"] for name, runs in times.items() if "fedra" in name for run in runs)
    loaded = min(run["before"] for name, runs in times.items() if "fedra" in name for run in runs)

    def speed(name: str) -> str:
        return f"{least[name]:.2f} s, {2 * size / least[name] / 1e9:.1f} GB/s"

    rows = [
        ("", "from disk", "from the system's cache"),
        *(
            (what, speed(f"{what}, from disk"), speed(f"{what}, from the cache"))
            for what in ("read twice", "fedra", "fedra with checksums")
        ),
        ("fedra's speed against reading twice", f"{share['from disk']:.0%}", f"{share['from the cache']:.0%}"),
    ]
    by_rule = [
        ("rule", "passes", "seconds of one core for each GB of files", "peak memory"),
        *(
            (
                found["rule"],
                f"{found['passes']:.0f}",
                f"{found['cpu_seconds_per_gb']:.2f}",
                f"{found['peak'] / 1e9:.2f} GB",
            )
            for found in rules
        ),
    ]
    described = machine("fedra", "numpy", "numba")
    markdown = (
        f"{table(rows)}\n\n{arguments.clients} clients, {int(arguments.dimension):,} float32 values each, "
        f"{size / 1e9:.1f} GB; the least of {arguments.repetitions} in random order, {THREADS} threads; the result is "
        f"written and brought to disk. Peak memory of the whole process, mapped files included: {peak / 1e9:.2f} GB, "
        f"of which {loaded / 1e9:.2f} GB before it begins (Python, NumPy, compiled code)."
    )
    if rules:
        markdown += f"\n\n{table(by_rule)}\n\nOne run each, from the cache."
    markdown += f" {machine_line(described)}."
    print(markdown)
    result = {
        "machine": described, "clients": arguments.clients, "dimension": int(arguments.dimension), "bytes": size,
        "runs": times, "share_of_reading_twice": share, "peak_bytes": peak, "rules": rules,
    }  # fmt: skip
    name = "scale" if rules else "scalelarge"
    write(name, result, markdown)
    quote(name, markdown, PAGE)
    if share["from disk"] < 0.6 or peak > 1.5e9:
        sys.exit(
            f"a figure was not reached: {share['from disk']:.0%} of reading twice, 60% must be; "
            f"{peak / 1e9:.2f} GB, 1.5 may be"
        )


if __name__ == "__main__":
    main()
