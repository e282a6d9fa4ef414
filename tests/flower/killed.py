"""A server in a process of its own, to be killed: python -m tests.flower.killed API KIND STATE RESULT ROUNDS."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from flwr.supercore.task_identity import TaskIdentity
from tests.flower.both import APIS, Arrays, federation, honest, make
from tests.server.stateful_rules import Diary

# What guards must select.
RULES = {"robust": "centered-clipping", "guard": Diary()}


def slow(client: int, number: int, sent: Arrays):
    time.sleep(0.005)
    return honest(client, number, sent)


CLIENTS = federation(8, **{f"client_{client}": slow for client in range(1, 9)})


def main() -> None:
    TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1
    name, kind, state, result, rounds = sys.argv[1:]
    api = APIS[name]
    arrays = api.run(make(api, kind, rule=RULES[kind], state=state), CLIENTS, int(rounds))
    unfinished = Path(f"{result}.new")
    with unfinished.open("wb") as file:
        np.savez(file, *arrays)
    unfinished.rename(result)


if __name__ == "__main__":
    main()
