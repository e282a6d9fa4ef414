"""Fingerprints of what fedra computes: all rules x attacks, resumed runs, and Flower's strategies, on this machine.

Bits differ between kinds of CPU, so nothing of this is committed: record before a change, compare after it.

    python benchmarks/fingerprints.py --write before.json
    python benchmarks/fingerprints.py --compare before.json
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Collection
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from fedra import RULES
from fedra.attacks import ATTACKS
from fedra.server import Observer
from fedra.simulation import SimulationConfig, resume, simulate

ROUNDS = 6
# Rules of earlier versions, by which a record of before can be compared; what came later is left out of it.
SMALL = {"dataset": "digits", "rounds": ROUNDS, "eval_every": 3, "checkpoint_every": 2, "num_sampled": 30}
FEDRA = {
    "mcne": {"estimator": "mcne"},
    "printed": {"estimator": "mcne", "variance": "separate", "prior": "number", "drop_ties": False},
    "iterated": {"estimator": "mcne", "iterate": True},
}


def configurations() -> dict[str, dict]:
    found = {}
    for rule, attack, alpha_q in product(RULES, ATTACKS, (None, 10.0)):
        ratio = 0.06 if rule == "bulyan" else 0.1
        found[f"{rule} {attack} {alpha_q}"] = {
            "rule": rule, "attack": attack, "alpha_q": alpha_q, "malicious_ratio": ratio,
        }  # fmt: skip
    for name, params in FEDRA.items():
        found[f"fedra {name}"] = {"rule": "fedra", "rule_params": params, "attack": "lie", "alpha_q": 10.0}
    for setting, partition in product(("fixed", "dynamic"), ("iid", "non-iid", "dirichlet")):
        found[f"fedra {setting} {partition}"] = {"setting": setting, "partition": partition, "attack": "optimize"}
    for optimizer in ("adam", "fedadam", "sgd"):
        found[f"{optimizer}, local steps"] = {"optimizer": optimizer, "local_steps": 2, "attack": "label-flip"}
    if os.environ.get("FEDRA_DATA"):
        for dataset in ("mnist", "huffpost"):
            found[f"{dataset} fedra"] = {"dataset": dataset, "attack": "lie", "alpha_q": 10.0, "max_quantity": 64}
    return {name: {**SMALL, **values} for name, values in found.items()}


def interrupted(config: SimulationConfig) -> str:
    """Run until the fourth round, stop there, and resume."""

    class Stop(Observer):
        def round(self, record) -> None:
            if record.round == 3:
                raise KeyboardInterrupt

    with tempfile.TemporaryDirectory() as folder:
        with contextlib.suppress(KeyboardInterrupt):
            simulate(config, out=Path(folder) / "run", observers=[Stop()])
        return resume(Path(folder) / "run").summary["weights_sha256"]


def simulated(wanted: Collection[str] | None) -> dict[str, str]:
    found = {}
    for name, values in configurations().items():
        if wanted is not None and name not in wanted:
            continue
        config = SimulationConfig(**values)
        found[name] = simulate(config).summary["weights_sha256"]
        if values.get("attack") == "lie":
            found[f"{name}, resumed"] = interrupted(config)
        print(f"{name}: {found[name][:12]}", file=sys.stderr)
    return found


def deployed() -> dict[str, str]:
    import numpy as np
    from flwr.serverapp.strategy import FedAdam, FedAvg
    from flwr.supercore.task_identity import TaskIdentity
    from tests.flower.federation import MemoryGrid, model, moved, record, reply_to

    from fedra.flower import Guard, RobustStrategy

    TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1

    def client(message):
        seed = 1000 * message.content["config"]["server-round"] + message.metadata.dst_node_id
        arrays = moved(message.content["arrays"], np.random.default_rng(seed))
        if message.metadata.dst_node_id == 3:
            arrays = {name: array - np.asarray(3, dtype=array.dtype) for name, array in arrays.items()}
        return reply_to(message, arrays, {"num-examples": 5 + message.metadata.dst_node_id})

    grid = MemoryGrid(dict.fromkeys(range(1, 14), client))
    strategies = {f"flower {rule}": RobustStrategy(rule=rule, fraction_evaluate=0.0) for rule in RULES}
    strategies["flower adam"] = RobustStrategy(server_optimizer="adam", fraction_evaluate=0.0)
    for inner, rule in product((FedAvg, FedAdam), ("fedra", "krum", "multi-krum")):
        strategies[f"guard {inner.__name__} {rule}"] = Guard(inner(fraction_evaluate=0.0), rule=rule)
    found = {}
    for name, strategy in strategies.items():
        result = strategy.start(grid, record(model()), num_rounds=4)
        content = b"".join(array.numpy().tobytes() for array in result.arrays.values())
        found[name] = hashlib.sha256(content).hexdigest()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--compare", type=Path)
    given = parser.parse_args()
    before = json.loads(given.compare.read_text()) if given.compare else None
    # What came later has nothing to be compared with.
    found = {**simulated(before), **deployed()}
    if given.write:
        given.write.write_text(json.dumps(found, indent=1))
    if before is not None:
        other = [name for name, digest in before.items() if found.get(name) != digest]
        for name in other:
            print(f"differs: {name}")
        print(f"{len(before) - len(other)} of {len(before)} are the same bits")
        sys.exit(bool(other))


if __name__ == "__main__":
    main()
