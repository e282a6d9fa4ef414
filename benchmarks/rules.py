"""What each rule costs, as a multiple of FedRA's time in the same run."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from harness import ONE_THREAD, contest, machine, machine_line, table, write

os.environ.update(ONE_THREAD)

import argparse

import numpy as np

import fedra
from fedra.rules.trusted_weights import WEIGHTS

CLIENTS, DIMENSION = 50, 1_000_000


def contestants() -> dict[str, fedra.Rule]:
    """Return every rule as it is by default, and those that weigh with every way of believing claims."""
    rules = {name: fedra.make_rule(name) for name in fedra.RULES}
    for name, rule in list(rules.items()):
        if stated := getattr(rule, "weights", None):
            others = (weights for weights in WEIGHTS if weights != stated)
            rules |= {f"{name} weights={weights}": fedra.make_rule(name, weights=weights) for weights in others}
    return rules | {f"{before}+median": fedra.make_rule("median", before=before) for before in fedra.PREAGGREGATORS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=8)
    repetitions = parser.parse_args().repetitions
    rng = np.random.default_rng(0)
    rows = list(rng.standard_normal((CLIENTS, DIMENSION), dtype=np.float32))
    quantities = np.maximum(1, rng.lognormal(np.log(20) - 4.5, 3, CLIENTS)).astype(int)
    rules = contestants()
    times = contest(
        {name: (lambda rule=rule: rule(rows, quantities, threads=1)) for name, rule in rules.items()},
        repetitions=repetitions,
    )
    unit = times["fedra"]["median_s"]
    ordered = sorted(times, key=lambda name: times[name]["median_s"])
    seconds = {name: times[name]["median_s"] for name in ordered}
    lines = [(name, f"{1e3 * taken:.0f}", f"{taken / unit:.2f}") for name, taken in seconds.items()]
    described = machine("fedra", "numpy", "numba")
    markdown = (
        f"{table([('rule', 'milliseconds', 'times FedRA'), *lines])}\n\n"
        f"n = {CLIENTS} clients, d = 1e6, float32, one thread; medians of {repetitions} runs in random order, "
        f"screening included. {machine_line(described)}."
    )
    print(markdown)
    write("rules", {"machine": described, "times": times}, markdown)


if __name__ == "__main__":
    main()
