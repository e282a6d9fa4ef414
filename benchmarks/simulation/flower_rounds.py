"""The exported rounds by Flower's simulation on Ray: one actor per core, FedAdam, no evaluation."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterable
from pathlib import Path

import flower_client
import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MessageType, RecordDict
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAdam
from flwr.simulation import run_simulation


class ExportedRounds(FedAdam):
    """FedAdam that gives the clients of an exported round to as many nodes, and notes when each round began."""

    def __init__(self, rounds: np.ndarray) -> None:
        super().__init__(fraction_train=1.0, fraction_evaluate=0.0, eta=1e-3)
        self.rounds = rounds
        self.began: list[float] = []

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        self.began.append(time.perf_counter())
        self.current_arrays = {name: array.numpy() for name, array in arrays.items()}
        nodes = list(grid.get_node_ids())
        return [
            Message(
                content=RecordDict({"arrays": arrays, "config": ConfigRecord({"client": client})}),
                message_type=MessageType.TRAIN,
                dst_node_id=nodes[client],
            )
            for client in self.rounds[server_round - 1].tolist()
        ]


def run(folder: Path) -> dict[str, list[float]]:
    rounds = np.load(folder / "rounds.npy")
    num_clients = len(np.load(folder / "offsets.npy")) - 1
    strategy = ExportedRounds(rounds)
    server = ServerApp()

    @server.main()
    def serve(grid: Grid, context: Context) -> None:
        while len(list(grid.get_node_ids())) < num_clients:
            time.sleep(0.1)
        arrays = ArrayRecord(flower_client.make_model().state_dict())
        strategy.start(grid=grid, initial_arrays=arrays, num_rounds=len(rounds))
        strategy.began.append(time.perf_counter())

    run_simulation(
        server_app=server,
        client_app=flower_client.app,
        num_supernodes=num_clients,
        backend_config={
            "init_args": {"num_cpus": len(os.sched_getaffinity(0)), "include_dashboard": False, "log_to_driver": False},
            "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
        },
    )
    if len(strategy.began) != len(rounds) + 1:
        raise RuntimeError(f"Flower ran {max(0, len(strategy.began) - 1)} of {len(rounds)} rounds; see its log above")
    return {"seconds": np.diff(strategy.began).tolist()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="what rounds.py exported")
    parser.add_argument("out", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    os.environ["BENCHMARK_FOLDER"] = str(arguments.folder.resolve())
    arguments.out.write_text(json.dumps(run(arguments.folder)), encoding="utf-8")


if __name__ == "__main__":
    main()
