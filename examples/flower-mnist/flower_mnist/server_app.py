"""The ServerApp: Flower's FedAvg, alone or guarded, or fedra's own strategy."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flwr.app import Array, ArrayRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg, Strategy

from fedra import Rule, make_rule
from fedra.flower import Guard, RobustStrategy
from fedra.rules import rule_parameters
from flower_mnist.task import evaluate, flat, initial_model, load

app = ServerApp()


def make_strategy(run: Mapping[str, Any]) -> Strategy:
    sampling = {
        "fraction_evaluate": float(run["fraction-evaluate"]),
        # Flower settles how many nodes to ask before it waits for them: without this, a first round may ask too few.
        "min_train_nodes": int(run["min-available-nodes"]),
        "min_available_nodes": int(run["min-available-nodes"]),
    }
    defence = str(run["defence"])
    if defence == "fedavg":
        return FedAvg(**sampling)
    options: dict[str, Any] = {
        "rule": make_own_rule(run),
        "audit": str(run["audit"]) or None,
        "state": str(run["state"]) or None,
    }
    if defence == "guard":
        return Guard(FedAvg(**sampling), **options)
    if defence == "robust":
        return RobustStrategy(server_optimizer=str(run["server-optimizer"]), **options, **sampling)
    raise ValueError(f"defence={defence!r}; valid: guard, robust, fedavg")


def make_own_rule(run: Mapping[str, Any]) -> Rule:
    name = str(run["rule"])
    takes_ratio = "malicious_ratio" in rule_parameters(name)
    return make_rule(name, malicious_ratio=float(run["malicious-ratio"])) if takes_ratio else make_rule(name)


@app.main()
def main(grid: Grid, context: Context) -> None:
    run = context.run_config
    data = load(run)
    inputs = flat(data.test_inputs)

    def on_server(server_round: int, arrays: ArrayRecord) -> MetricRecord:
        model = {name: array.numpy() for name, array in arrays.items()}
        loss, accuracy = evaluate(model, inputs, data.test_labels)
        return MetricRecord({"loss": loss, "accuracy": accuracy})

    model = initial_model(data, int(run["seed"]))
    result = make_strategy(run).start(
        grid=grid,
        initial_arrays=ArrayRecord({name: Array(array) for name, array in model.items()}),
        num_rounds=int(run["num-server-rounds"]),
        evaluate_fn=on_server,
    )
    accuracies = {number: float(m["accuracy"]) for number, m in result.evaluate_metrics_serverapp.items()}
    print(f"{data.name}, {run['defence']}: accuracy by round {accuracies}")
    if run["result"]:
        train = {number: dict(m) for number, m in result.train_metrics_clientapp.items()}
        Path(str(run["result"])).write_text(json.dumps({"accuracy": accuracies, "train": train}), encoding="utf-8")
