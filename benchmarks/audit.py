"""How large the page of an audit trail is, and how long it takes to make, at two sizes.

python benchmarks/audit.py
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.audit.large import write_trail

from fedra.audit import read_trail, summary_text
from fedra.audit.command import write_page
from harness import machine, machine_line, quote, table, write

ROOT = Path(__file__).resolve().parents[1]
SIZES = ((150, 1000, None), (20_000, 1000, 20))
HEADS = ("trail", "its size", "read", "summary", "page", "size of the page")


def seconds(call: Callable[[], Any]) -> tuple[Any, float]:
    begin = time.process_time()
    result = call()
    return result, time.process_time() - begin


def measured(folder: Path, rounds: int, clients: int, sampled: int | None) -> dict[str, float | str]:
    path = write_trail(folder / "a.jsonl", rounds=rounds, clients=clients, sampled=sampled)
    trail, reading = seconds(lambda: read_trail(path))
    _, summing = seconds(lambda: summary_text(trail))
    _, writing = seconds(lambda: write_page(trail, folder / "a.html", title="a.jsonl"))
    return {
        "trail": f"{rounds:,} rounds x {sampled or clients:,} replies",
        "trail_megabytes": path.stat().st_size / 1e6,
        "read_seconds": reading,
        "summary_seconds": summing,
        "page_seconds": writing,
        "page_megabytes": (folder / "a.html").stat().st_size / 1e6,
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = [measured(Path(folder), *size) for size in SIZES]
    rows = [
        (str(name), f"{size:.0f} MB", *(f"{each:.1f} s" for each in times), f"{page:.1f} MB")
        for name, size, *times, page in (line.values() for line in found)
    ]
    described = machine("fedra")
    markdown = f"{table([HEADS, *rows])}\n\nOne run each; seconds are of processor time. {machine_line(described)}."
    write("audit", {"machine": described, "sizes": found}, markdown)
    quote("audit", markdown, ROOT / "docs" / "flower.md")
    print(markdown)


if __name__ == "__main__":
    main()
