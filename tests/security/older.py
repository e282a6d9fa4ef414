"""Rounds of Flower's older API, with answers as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest.mock import MagicMock

import numpy as np
from flwr.common import Code, EvaluateRes, FitRes, Status, ndarrays_to_parameters, parameters_to_ndarrays
from flwr.server.client_proxy import ClientProxy

OK = Status(code=Code.OK, message="")


class Proxy(ClientProxy):
    """A client by name only; what it answers is given to the strategy directly."""

    def get_properties(self, *args: Any) -> Any: ...

    def get_parameters(self, *args: Any) -> Any: ...

    def fit(self, *args: Any) -> Any: ...

    def evaluate(self, *args: Any) -> Any: ...

    def reconnect(self, *args: Any) -> Any: ...


def older_round(
    strategy, answers: Sequence[FitRes], sent: list[np.ndarray], server_round: int = 1, failures: Sequence[Any] = ()
):
    """Play a round; answer i is client i's. Return the new arrays, or None, and the metrics."""
    proxies = [Proxy(str(place)) for place in range(len(answers))]
    manager = MagicMock()
    manager.num_available.return_value = len(proxies)
    manager.sample.return_value = proxies
    strategy.configure_fit(server_round, ndarrays_to_parameters(sent), manager)
    parameters, metrics = strategy.aggregate_fit(server_round, list(zip(proxies, answers, strict=True)), list(failures))
    return None if parameters is None else parameters_to_ndarrays(parameters), metrics


def older_evaluation(strategy, answers: Sequence[EvaluateRes], server_round: int = 1):
    results = [(Proxy(str(place)), answer) for place, answer in enumerate(answers)]
    return strategy.aggregate_evaluate(server_round, results, [])
