"""A federation in memory: real Flower messages, no processes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid

Client = Callable[[Message], Message | list[Message] | None]

SHAPES = {"conv.weight": (3, 2, 2), "conv.bias": (3,), "scale": (), "fc.weight": (4, 5)}


class MemoryGrid(Grid):
    """A grid whose nodes are functions from a message to its reply."""

    def __init__(self, clients: dict[int, Client], extra_nodes: int = 0) -> None:
        self.clients = clients
        self.extra_nodes = extra_nodes

    def set_run(self, run) -> None:
        raise NotImplementedError

    @property
    def run(self):
        raise NotImplementedError

    def create_message(self, *args, **kwargs) -> Message:
        raise NotImplementedError

    def get_node_ids(self) -> Iterable[int]:
        return [*self.clients, *range(10_000, 10_000 + self.extra_nodes)]

    def get_nodes(self):
        raise NotImplementedError

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        raise NotImplementedError

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        raise NotImplementedError

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        replies: list[Message] = []
        for message in sorted(messages, key=lambda message: message.metadata.dst_node_id):
            answer = self.clients[message.metadata.dst_node_id](message)
            replies += answer if isinstance(answer, list) else [] if answer is None else [answer]
        return replies


def model(
    seed: int = 0, shapes: dict[str, tuple[int, ...]] = SHAPES, dtype: type = np.float32
) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal(shape).astype(dtype) for name, shape in shapes.items()}


def record(arrays: dict[str, np.ndarray]) -> ArrayRecord:
    return ArrayRecord({name: Array(np.asarray(array)) for name, array in arrays.items()})


def arrays_of(arrays: ArrayRecord) -> dict[str, np.ndarray]:
    return {name: array.numpy() for name, array in arrays.items()}


def moved(arrays: ArrayRecord, rng: np.random.Generator, step: float = 0.01) -> dict[str, np.ndarray]:
    """An honest client's arrays: what it was sent, a little further in a common direction."""
    return {
        name: (array + np.asarray(step + 0.1 * step * rng.standard_normal(array.shape), dtype=array.dtype))
        if array.dtype.kind == "f"
        else array + array.dtype.type(1)
        for name, array in arrays_of(arrays).items()
    }


def reply_to(message: Message, arrays, metrics, **records) -> Message:
    content = RecordDict({"arrays": arrays if isinstance(arrays, ArrayRecord) else record(arrays)})
    content["metrics"] = metrics if isinstance(metrics, MetricRecord) else MetricRecord(metrics)
    for name, value in records.items():
        content[name] = value
    return Message(content, reply_to=message)


def honest(seed: int, quantity: int = 20) -> Client:
    rng = np.random.default_rng(seed)

    def client(message: Message) -> Message:
        if message.metadata.message_type.startswith("evaluate"):
            content = RecordDict({"metrics": MetricRecord({"accuracy": 0.9, "num-examples": quantity})})
            return Message(content, reply_to=message)
        sent = message.content["arrays"]
        return reply_to(message, moved(sent, rng), {"loss": 0.5, "num-examples": quantity})

    return client


def federation(count: int, *, quantity: int = 20, **replaced: Client) -> MemoryGrid:
    """Honest nodes 1..count; node_3=... replaces one."""
    clients: dict[int, Client] = {node: honest(node, quantity) for node in range(1, count + 1)}
    clients |= {int(name.removeprefix("node_")): client for name, client in replaced.items()}
    return MemoryGrid(clients)


def one_round(strategy, grid: MemoryGrid, arrays: ArrayRecord, server_round: int = 1):
    random.seed(0)
    messages = strategy.configure_train(server_round, arrays, ConfigRecord(), grid)
    return strategy.aggregate_train(server_round, grid.send_and_receive(messages))
