"""What all benchmarks share: the machine, fair timing, memory, and writing results down."""

from __future__ import annotations

import json
import os
import platform
import random
import re
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
# What a figure must reach and should reach decides whether a command fails, and is in the JSON file.
_LIMITS = ("must", "aim")

# Every library on one thread, unless a contestant is given more on purpose. Before NumPy is imported.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


def machine(*packages: str) -> dict[str, Any]:
    """Describe where the figures come from."""
    text = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    model = re.search(r"model name\s*:\s*(.+)", text)
    flags = re.search(r"^flags\s*:\s*(.+)$", text, re.MULTILINE)
    known = set(flags.group(1).split()) if flags else set()
    versions = {}
    for name in packages:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "absent"
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cpu": model.group(1).strip() if model else platform.processor(),
        "cores": len(os.sched_getaffinity(0)),
        "vector": [name for name in ("avx2", "avx512f") if name in known],
        "memory_gib": round(memory, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "versions": versions,
    }


def machine_line(description: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in description["versions"].items())
    vector = "/".join(description["vector"]) or "no vector extension"
    return (
        f"{description['cores']} cores of {description['cpu']} ({vector}), {description['memory_gib']} GiB, "
        f"Python {description['python']}, {versions}"
    )


def contest(contestants: Mapping[str, Callable[[], object]], *, repetitions: int = 12, seed: int = 0) -> dict[str, Any]:
    """Time all contestants in one run, in an order drawn anew for each repetition; the first call is not counted."""
    for run in contestants.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in contestants}
    order = random.Random(seed)
    for _ in range(repetitions):
        names = list(contestants)
        order.shuffle(names)
        for name in names:
            started = time.perf_counter()
            contestants[name]()
            times[name].append(time.perf_counter() - started)
    return {
        name: {
            "median_s": statistics.median(values),
            "least_s": min(values),
            "most_s": max(values),
            "repetitions": repetitions,
        }
        for name, values in times.items()
    }


def memory_now(key: str) -> int:
    """Return a line of this process's memory in bytes, such as RssAnon or VmHWM."""
    found = re.search(rf"^{key}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    return int(found.group(1)) * 1024 if found else 0


@contextmanager
def peak_own_memory() -> Iterator[list[int]]:
    """Watch memory that is not file-backed; the list's one number is the most beyond the start, in bytes."""
    start = memory_now("RssAnon")
    most = [0]
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.002):
            most[0] = max(most[0], memory_now("RssAnon") - start)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield most
    finally:
        done.set()
        watcher.join()
        most[0] = max(most[0], memory_now("RssAnon") - start)


def table(rows: list[tuple[str, ...]]) -> str:
    """Return a Markdown table, the first row its headings."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    return "\n".join(lines)


def write(name: str, result: Mapping[str, Any], markdown: str) -> None:
    """Write NAME.json and NAME.md under results, and put the table where the page of benchmarks quotes it."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    markdown = without_limits(markdown)
    (RESULTS / f"{name}.md").write_text(markdown + "\n", encoding="utf-8")
    quote(name, markdown)


def without_limits(markdown: str) -> str:
    """Return a text whose first table has no columns of limits any more."""
    lines = markdown.split("\n")
    headings = [cell.strip() for cell in lines[0].strip("|").split("|")]
    shown = [place for place, heading in enumerate(headings) if heading not in _LIMITS]
    for number, line in enumerate(lines):
        if not line.startswith("|"):
            break
        cells = line.strip().strip("|").split("|")
        lines[number] = "|" + "|".join(cells[place] for place in shown) + "|"
    return "\n".join(lines)


def quote(name: str, markdown: str, page: Path = PAGE) -> None:
    """Replace what stands between a page's markers for this result, where it has them."""
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    text = page.read_text(encoding="utf-8")
    if start in text and end in text:
        before, _, rest = text.partition(start)
        after = rest.partition(end)[2]
        page.write_text(f"{before}{start}\n{markdown}\n{end}{after}", encoding="utf-8")
