"""The same federation in both of Flower's APIs: clients that answer alike, strategies that are made alike."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import MagicMock

import numpy as np
from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict
from flwr.common import EvaluateRes, FitRes, Parameters, ndarrays_to_parameters, parameters_to_ndarrays
from flwr.server import strategy as older
from flwr.serverapp import strategy as current
from tests.flower.federation import MemoryGrid
from tests.security.older import OK, Proxy

from fedra.flower import Guard, RobustStrategy, legacy

Arrays = list[np.ndarray]


@dataclass
class Answer:
    """What a client replies, with `tensors` as .npy bytes where they are to differ from the arrays."""

    arrays: Arrays
    claim: Any = 20
    metrics: dict[str, Any] = field(default_factory=lambda: {"loss": 0.5})
    tensors: list[bytes] | None = None

    def parameters(self) -> Parameters:
        made = ndarrays_to_parameters(self.arrays)
        return made if self.tensors is None else Parameters(self.tensors, "numpy.ndarray")


# A client: from its number, the round, and what it was sent, to its answer.
Client = Callable[[int, int, Arrays], Answer]


def model() -> Arrays:
    rng = np.random.default_rng(0)
    arrays = [np.asarray(rng.standard_normal(shape), dtype=np.float32) for shape in ((4, 3), (3,), ())]
    return [*arrays, np.asarray(5)]


def honest(client: int, number: int, sent: Arrays) -> Answer:
    """A client that depends on its number and the round alone, so that runs can be compared."""
    rng = np.random.default_rng(1000 * number + client)
    arrays = [
        np.asarray(a + 0.01 + 0.002 * rng.standard_normal(a.shape), dtype=a.dtype) if a.dtype.kind == "f" else a
        for a in sent
    ]
    return Answer(arrays, claim=10 + client, metrics={"loss": 1 / (number + client)})


def federation(count: int = 8, **replaced: Client) -> dict[int, Client]:
    """Honest clients 1..count; client_3=... replaces one."""
    clients: dict[int, Client] = dict.fromkeys(range(1, count + 1), honest)
    return clients | {int(name.removeprefix("client_")): client for name, client in replaced.items()}


def average(metrics: list[tuple[int, Mapping[str, Any]]]) -> dict[str, Any]:
    total = sum(count for count, _ in metrics)
    return {key: sum(count * each[key] for count, each in metrics) / total for key in metrics[0][1]}


class MessageApi:
    """Flower's Message API."""

    name = "message"
    flower = current

    def robust(self, **options: Any) -> RobustStrategy:
        return RobustStrategy(**options)

    def guard(self, inner: Any, **options: Any) -> Guard:
        return Guard(inner, **options)

    def fedavg(self, kind: type | None = None, **options: Any) -> Any:
        return (kind or current.FedAvg)(**options)

    def run(self, strategy: Any, clients: Mapping[int, Client], rounds: int, evaluate=None) -> Arrays:
        """Run until this many rounds are done in all; `evaluate` is called with each round's number and model."""

        def node(message: Message) -> Message | None:
            number = message.content["config"]["server-round"]
            client = clients[message.metadata.dst_node_id]
            if message.metadata.message_type.startswith("evaluate"):
                metrics = MetricRecord({"accuracy": 0.75, "loss": 0.25, "num-examples": 10})
                return Message(RecordDict({"metrics": metrics}), reply_to=message)
            sent = [array.numpy() for array in message.content["arrays"].values()]
            answer = client(message.metadata.dst_node_id, number, sent)
            metrics = MetricRecord()
            metrics.__dict__["_data"].update({**answer.metrics, "num-examples": answer.claim})
            arrays = ArrayRecord(
                {
                    str(place): Array("float32", (), "numpy.ndarray", tensor)
                    for place, tensor in enumerate(answer.parameters().tensors)
                }
            )
            return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)

        random.seed(0)
        result = strategy.start(
            MemoryGrid(dict.fromkeys(clients, node)),
            ArrayRecord({str(place): Array(array) for place, array in enumerate(model())}),
            num_rounds=rounds,
            evaluate_fn=None
            if evaluate is None
            else lambda number, arrays: evaluate(number, [array.numpy() for array in arrays.values()]),
        )
        return [array.numpy() for array in result.arrays.values()]


class OlderApi:
    """Flower's older API, in the order of `flwr.server.Server.fit`, but with replies in the order of the clients."""

    name = "older"
    flower = older

    def _options(self, **options: Any) -> dict[str, Any]:
        return {
            "on_fit_config_fn": lambda number: {"server-round": number},
            "initial_parameters": ndarrays_to_parameters(model()),
            "fit_metrics_aggregation_fn": average,
            "evaluate_metrics_aggregation_fn": average,
            **options,
        }

    def robust(self, **options: Any) -> legacy.RobustStrategy:
        return legacy.RobustStrategy(**self._options(**options))

    def guard(self, inner: Any, **options: Any) -> legacy.Guard:
        return legacy.Guard(inner, **options)

    def fedavg(self, kind: type | None = None, **options: Any) -> Any:
        return (kind or older.FedAvg)(**self._options(**options))

    def run(self, strategy: Any, clients: Mapping[int, Client], rounds: int, evaluate=None) -> Arrays:
        manager = MagicMock()
        manager.num_available.return_value = len(clients)
        manager.sample.return_value = [Proxy(str(client)) for client in clients]
        parameters = strategy.initialize_parameters(manager)
        if evaluate is not None:
            evaluate(strategy.server.done, parameters_to_ndarrays(parameters))
        for number in range(1, rounds - strategy.server.done + 1):
            results = []
            for proxy, ins in strategy.configure_fit(number, parameters, manager):
                sent = parameters_to_ndarrays(ins.parameters)
                answer = clients[int(proxy.cid)](int(proxy.cid), ins.config["server-round"], sent)
                results.append((proxy, FitRes(OK, answer.parameters(), answer.claim, answer.metrics)))
            made, _ = strategy.aggregate_fit(number, results, [])
            parameters = made or parameters
            if evaluate is not None:
                evaluate(number + strategy.server.done, parameters_to_ndarrays(parameters))
            asked = strategy.configure_evaluate(number, parameters, manager)
            if asked:
                answers = [(proxy, EvaluateRes(OK, 0.25, 10, {"accuracy": 0.75})) for proxy, _ in asked]
                strategy.aggregate_evaluate(number, answers, [])
        return parameters_to_ndarrays(parameters)


APIS = {"message": MessageApi(), "older": OlderApi()}


def make(api: MessageApi | OlderApi, kind: str, *, evaluate: bool = False, inner: Any = None, **options: Any) -> Any:
    """A RobustStrategy or a Guard of FedAvg, evaluated by clients where that is wanted."""
    fraction = {} if evaluate else {"fraction_evaluate": 0.0}
    if kind == "robust":
        return api.robust(**options, **fraction)
    return api.guard(api.fedavg(**fraction) if inner is None else inner, **options)


STRATEGIES = {f"{kind} {name}": (api, kind) for name, api in APIS.items() for kind in ("robust", "guard")}


def same(one: Arrays, other: Arrays) -> bool:
    return len(one) == len(other) and all(
        a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
        for a, b in zip(one, other, strict=True)
    )


class Accountant:
    """The least that Flower's accountants have."""

    def __init__(self) -> None:
        self.count = 0

    def compose(self, event, count=1):
        self.count += count

    def get_privacy_spent(self, delta=None):
        return self.count

    def state_dict(self):
        return {"count": self.count}

    def load_state_dict(self, state):
        self.count = state["count"]
