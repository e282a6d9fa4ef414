"""MNIST under attack, three seeds: what FedRA keeps of FedAdam's clean accuracy, and what FedAdam loses."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from harness import ONE_THREAD, machine, machine_line, table, write

os.environ.update(ONE_THREAD)

import argparse
import statistics
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

from fedra.simulation import SimulationConfig, simulate

CELLS = [("fedavg", "none"), ("fedavg", "lie"), ("fedavg", "optimize")]
CELLS += [("fedra", attack) for attack in ("none", "label-flip", "lie", "optimize")]


def cell(rule: str, attack: str, seed: int, rounds: int, data_dir: str | None) -> dict[str, Any]:
    config = SimulationConfig(
        dataset="mnist",
        data_dir=data_dir,
        partition="iid",
        setting="fixed",
        rule=rule,
        attack=attack,
        alpha_q=None if attack == "none" else 10,
        rounds=rounds,
        lr=1e-3,
        max_quantity=512,
        seed=seed,
    )
    summary = simulate(config).summary
    summary["config"].pop("data_dir", None)  # where the data lie is nobody's business
    return summary


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", default=os.environ.get("FEDRA_DATA"))
    parser.add_argument("--rounds", type=int, default=250)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    jobs = [(rule, attack, seed) for seed in range(arguments.seeds) for rule, attack in CELLS]
    results: dict[tuple[str, str, int], dict[str, Any]] = {}
    with ProcessPoolExecutor(arguments.workers, mp_context=get_context("spawn")) as pool:
        futures = {job: pool.submit(cell, *job, arguments.rounds, arguments.data_dir) for job in jobs}
        for job, future in futures.items():
            results[job] = future.result()
            print(*job, f"{results[job]['final_accuracy']:.2f}", flush=True)
    rows = [("rule", "attack, alpha_q 10", *(f"seed {seed}" for seed in range(arguments.seeds)), "mean", "recall")]
    for rule, attack in CELLS:
        runs = [results[rule, attack, seed] for seed in range(arguments.seeds)]
        accuracies = [run["final_accuracy"] for run in runs]
        recalls = [run["filtering_recall"] for run in runs if run["filtering_recall"] is not None]
        name = "FedAdam" if rule == "fedavg" else "FedRA"
        recall = f"{statistics.mean(recalls):.3f}" if recalls else "-"
        rows.append(
            (name, attack, *(f"{value:.2f}" for value in accuracies), f"{statistics.mean(accuracies):.2f}", recall)
        )
    described = machine("fedra", "numpy", "numba", "torch")
    markdown = (
        f"{table(rows)}\n\nMNIST, IID, fixed ratio, {arguments.rounds} rounds, lr 1e-3, quantities capped at 512; test "
        f"accuracy at the last round in percent; recall is the share of malicious clients left out. "
        f"{machine_line(described)}."
    )
    print("\n" + markdown)
    cells = [{"rule": rule, "seed": seed, "attack": attack, **run} for (rule, attack, seed), run in results.items()]
    write("accuracy", {"machine": described, "cells": cells}, markdown)


if __name__ == "__main__":
    main()
