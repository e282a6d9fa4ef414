"""The ServerApp: centred clipping, which carries its centre from round to round."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from flwr.app import Array, ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp

from fedra.flower import RobustStrategy

app = ServerApp()


class InOrder(RobustStrategy):
    """Sums of floats depend on their order, and replies come in any: two runs can be compared where theirs is one."""

    def aggregate_train(self, server_round, replies):
        ordered = sorted(replies, key=lambda reply: reply.content["metrics"]["place"])
        return super().aggregate_train(server_round, ordered)


@app.main()
def main(grid: Grid, context: Context) -> None:
    run = context.run_config
    Path(str(run["process"])).write_text(str(os.getpid()), encoding="utf-8")
    nodes = int(run["min-available-nodes"])
    strategy = InOrder(
        rule="centered-clipping",
        server_optimizer="adam",
        state=str(run["state"]) or None,
        fraction_evaluate=0.0,
        min_train_nodes=nodes,
        min_available_nodes=nodes,
    )
    rng = np.random.default_rng(0)
    model = {"weight": rng.standard_normal((20, 30)).astype(np.float32), "bias": np.zeros(30, np.float32)}
    result = strategy.start(
        grid=grid,
        initial_arrays=ArrayRecord({name: Array(array) for name, array in model.items()}),
        num_rounds=int(run["num-server-rounds"]),
    )
    unfinished = Path(f"{run['result']}.new")
    with unfinished.open("wb") as file:
        np.savez(file, **{name: array.numpy() for name, array in result.arrays.items()})
    unfinished.rename(str(run["result"]))
