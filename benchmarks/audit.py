"""How large the page of an audit trail is, and how long it takes to make, at two sizes.

python benchmarks/audit.py
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.audit.large import write_trail

from fedra.audit import read_trail, summary_text
from fedra.audit.command import write_page

SIZES = ((150, 1000, None), (20_000, 1000, 20))


def seconds(call):
    begin = time.perf_counter()
    result = call()
    return result, time.perf_counter() - begin


def main() -> None:
    print("| trail | its size | read | summary | page | size of the page |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for rounds, clients, sampled in SIZES:
            path = write_trail(Path(folder) / "a.jsonl", rounds=rounds, clients=clients, sampled=sampled)
            page = Path(folder) / "a.html"
            trail, reading = seconds(lambda path=path: read_trail(path))
            _, summing = seconds(lambda trail=trail: summary_text(trail))
            _, writing = seconds(lambda trail=trail, page=page: write_page(trail, page, title="a.jsonl"))
            sizes = [file.stat().st_size / 1e6 for file in (path, page)]
            name = f"{rounds:,} rounds x {sampled or clients:,} replies"
            times = " | ".join(f"{each:.1f} s" for each in (reading, summing, writing))
            print(f"| {name} | {sizes[0]:.0f} MB | {times} | {sizes[1]:.1f} MB |")


if __name__ == "__main__":
    main()
