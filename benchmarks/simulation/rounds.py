"""Rounds of fedra's own simulation, timed in a process of its own; and the same rounds written down for peers."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from harness import ONE_THREAD, memory_now

os.environ.update(ONE_THREAD)

import argparse
import itertools
import json
import tempfile
import time
from typing import Any

import numpy as np
import torch

from fedra.data import Dataset, load_dataset
from fedra.seeding import generator
from fedra.simulation import Simulation, SimulationConfig, simulate
from fedra.simulation.federation import make_federation

MODELS: dict[str, dict[str, Any]] = {"80k": {}, "580k": {"channels": (32, 64), "hidden": 512}}
LARGE_CLIENT = 7000
MEMORY_ROUNDS = 12


def make_config(**changes: Any) -> SimulationConfig:
    """MNIST with the paper's quantities, nobody capped: N = 3060, one client of 7,109 samples."""
    settings = {"dataset": "mnist", "rule": "fedavg", "lr": 1e-3, "rounds": 10**6, "eval_every": 10**6}
    return SimulationConfig(**{**settings, **changes})


def make_dataset(data_dir: str | None) -> Dataset:
    """Load MNIST, or draw data of its shape where there is no folder to load it from."""
    if data_dir:
        return load_dataset("mnist", data_dir)
    draw = generator(0, "benchmark/data")
    parts = {}
    for part, count in (("train", 60_000), ("test", 10_000)):
        parts[f"{part}_inputs"] = draw.random((count, 1, 28, 28), dtype=np.float32)
        parts[f"{part}_labels"] = draw.integers(10, size=count)
    return Dataset(name="synthetic", num_classes=10, class_names=tuple("0123456789"), **parts)


def export(folder: Path, data_dir: str | None, rounds: int) -> dict[str, Any]:
    """Write the data, each client's part of them, and who takes part in each round."""
    dataset = make_dataset(data_dir)
    federation = make_federation(make_config(), dataset)
    chosen = np.stack([federation.sample(number) for number in range(rounds)])
    np.save(folder / "inputs.npy", dataset.train_inputs)
    np.save(folder / "labels.npy", dataset.train_labels)
    np.save(folder / "order.npy", federation.partition.order)
    np.save(folder / "offsets.npy", federation.partition.offsets)
    np.save(folder / "rounds.npy", chosen)
    samples = federation.partition.quantities[chosen].sum(axis=1)
    return {"num_clients": federation.num_clients, "samples": samples.tolist(), "data": dataset.name}


class TimedRule:
    """A rule that keeps the processor time of its calls."""

    def __init__(self, rule: Any) -> None:
        self.rule = rule
        self.seconds: list[float] = []

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        started = time.process_time()
        verdict = self.rule(*arguments, **options)
        self.seconds.append(time.process_time() - started)
        return verdict


def timed(data_dir: str | None, rounds: int, rule: str, model: str) -> dict[str, Any]:
    """Run rounds without evaluation; return for each its wall and processor time, and the rule's part of the latter."""
    simulation = Simulation(make_config(rule=rule, model_params=MODELS[model]), make_dataset(data_dir))
    timed_rule = TimedRule(simulation.rule)
    simulation.rule = timed_rule  # type: ignore[assignment]
    state = simulation.initial_state()
    wall, processor, samples = [], [], []
    for _ in range(rounds):
        started = time.perf_counter(), time.process_time()
        state, outcome = simulation.step(state)
        wall.append(time.perf_counter() - started[0])
        processor.append(time.process_time() - started[1])
        samples.append(int(outcome.true_quantities.sum()))
    return {
        "seconds": wall,
        "processor_seconds": processor,
        "rule_processor_seconds": timed_rule.seconds,
        "samples": samples,
        "dimension": len(state.weights),
    }


def memory(data_dir: str | None) -> dict[str, Any]:
    """Run FedRA under attack with full quantities, in one round the largest client; return the peak memory."""
    dataset = make_dataset(data_dir)
    for seed in itertools.count():
        attacked = {"rule": "fedra", "attack": "lie", "alpha_q": 10, "seed": seed}
        federation = make_federation(make_config(**attacked), dataset)
        large = np.flatnonzero(federation.partition.quantities >= LARGE_CLIENT)
        if not len(large):
            raise ValueError(f"no client of the partition holds {LARGE_CLIENT} samples or more")
        met = any(np.isin(large, federation.sample(number)).any() for number in range(MEMORY_ROUNDS))
        if met and not federation.malicious[large].any():
            break
    config = make_config(**attacked, rounds=MEMORY_ROUNDS, checkpoint_every=5)
    with tempfile.TemporaryDirectory() as folder:
        result = simulate(config, out=Path(folder) / "run", dataset=dataset)
    return {
        "peak_bytes": memory_now("VmHWM"),
        "rounds": config.rounds,
        "largest_client": int(result.clients["true_quantity"].max()),
        "seed": config.seed,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="JSON file to write")
    parser.add_argument("--data-dir")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--rule", default="fedavg")
    parser.add_argument("--model", choices=list(MODELS), default="80k")
    parser.add_argument("--memory", action="store_true", help="measure the peak memory of a run instead")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.memory:
        found = memory(arguments.data_dir)
    else:
        found = timed(arguments.data_dir, arguments.rounds, arguments.rule, arguments.model)
    arguments.out.write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
