"""`RobustStrategy` and `Guard` for `flwr.server.strategy`, Flower's older API: `aggregate_fit` with a rule.

Parameters carry no names here: arrays are known by their position.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy.typing as npt
from flwr.common import (
    EvaluateIns,
    FitIns,
    Parameters,
    Scalar,
    ndarrays_to_parameters,
    parameters_to_ndarrays,
)
from flwr.server.client_manager import ClientManager
from flwr.server.client_proxy import ClientProxy
from flwr.server.strategy import FedAvg, Strategy

from fedra.alarms import WarningLimits
from fedra.audit import RoundReport
from fedra.flower.canonical import pinned
from fedra.flower.consult import call_metrics, consult
from fedra.flower.defence import AuditTarget, Defence
from fedra.flower.disk import OnDiskError
from fedra.flower.examples import examples
from fedra.flower.guard import check_selects
from fedra.flower.layout import shared_metrics
from fedra.flower.older import Evaluated, EvaluateResults, FitResults, Rounds, by_position
from fedra.flower.privacy import no_model_note
from fedra.flower.step import ServerStep
from fedra.flower.updates import flat_model
from fedra.optimizers import ServerOptimizer
from fedra.rules import Rule


class RobustStrategy(FedAvg):
    """As `fedra.flower.RobustStrategy`, for the older API; `fedavg` are the options of its FedAvg."""

    def __init__(
        self,
        *,
        rule: Rule | str = "fedra",
        server_optimizer: ServerOptimizer | str = "sgd",
        audit: AuditTarget = None,
        on_round: Callable[[RoundReport], None] | None = None,
        threads: int | None = None,
        on_disk_error: OnDiskError = "warn",
        warn_at: WarningLimits | None = None,
        **fedavg: Any,
    ) -> None:
        super().__init__(**fedavg)
        self._rounds = Rounds(
            Defence(
                rule=rule, audit=audit, on_round=on_round, threads=threads, on_disk_error=on_disk_error, warn_at=warn_at
            )
        )
        self._step = ServerStep(server_optimizer)

    def configure_fit(
        self, server_round: int, parameters: Parameters, client_manager: ClientManager
    ) -> list[tuple[ClientProxy, FitIns]]:
        """Sample as FedAvg does, and remember what is sent."""
        asked = super().configure_fit(server_round, parameters, client_manager)
        self._rounds.send(parameters, client_manager, asked)
        return asked

    def aggregate_fit(
        self, server_round: int, results: FitResults, failures: list[Any]
    ) -> tuple[Parameters | None, dict[str, Scalar]]:
        """Screen and aggregate; no parameters where the round changed nothing."""
        form, sent = self._rounds.form, self._rounds.before()
        weights = flat_model(form, by_position(sent))
        minus = weights if self._rounds.defence.needs_updates else None
        outcome = self._rounds.judge(server_round, results, failures, minus=minus)
        trained, report = self._step.take(weights, form, outcome, of_updates=minus is not None)
        self._rounds.defence.publish(report)
        if trained is None:
            return None, _figures({}, report)
        tensors = [
            ndarrays_to_parameters([trained[name]]).tensors[0] if name in trained else data
            for name, data in by_position(sent).items()
        ]
        metrics: dict[str, Scalar] | None = {}
        if self.fit_metrics_aggregation_fn:
            keys = shared_metrics(outcome.kept)
            numbers = examples([reply.claim for reply in outcome.kept], outcome.weights)
            weighed = [
                (number, {key: reply.metrics[key] for key in keys})
                for reply, number in zip(outcome.kept, numbers, strict=True)
            ]
            metrics, _ = call_metrics(self.fit_metrics_aggregation_fn, weighed)
        return Parameters(tensors=tensors, tensor_type=sent.tensor_type), _figures(metrics or {}, report)

    def configure_evaluate(
        self, server_round: int, parameters: Parameters, client_manager: ClientManager
    ) -> list[tuple[ClientProxy, EvaluateIns]]:
        """Sample as FedAvg does."""
        asked = super().configure_evaluate(server_round, parameters, client_manager)
        self._rounds.asked_to_evaluate = frozenset(proxy.cid for proxy, _ in asked)
        return asked

    def aggregate_evaluate(self, server_round: int, results: EvaluateResults, failures: list[Any]) -> Evaluated:
        """Average over screened results by the weights of training."""
        plain = super().aggregate_evaluate
        return self._rounds.evaluate(
            server_round, results, failures, lambda kept: call_metrics(plain, server_round, kept, [])
        )


class Guard(Strategy):
    """As `fedra.flower.Guard`, for strategies of the older API."""

    def __init__(
        self,
        inner: Strategy,
        *,
        rule: Rule | str = "fedra",
        audit: AuditTarget = None,
        on_round: Callable[[RoundReport], None] | None = None,
        threads: int | None = None,
        on_disk_error: OnDiskError = "warn",
        warn_at: WarningLimits | None = None,
    ) -> None:
        if not isinstance(inner, Strategy):
            raise TypeError(f"inner={inner!r}; give a strategy of flwr.server.strategy")
        self.inner = inner
        self._rounds = Rounds(
            Defence(
                rule=rule, audit=audit, on_round=on_round, threads=threads, on_disk_error=on_disk_error, warn_at=warn_at
            ),
            inner,
        )
        check_selects(self._rounds.defence.rule)

    def initialize_parameters(self, client_manager: ClientManager) -> Parameters | None:
        """As the inner strategy does."""
        return self.inner.initialize_parameters(client_manager)

    def configure_fit(
        self, server_round: int, parameters: Parameters, client_manager: ClientManager
    ) -> list[tuple[ClientProxy, FitIns]]:
        """Let the inner strategy choose, and remember what it sends."""
        asked = self.inner.configure_fit(server_round, parameters, client_manager)
        self._rounds.send(parameters, client_manager, asked)
        return asked

    def aggregate_fit(
        self, server_round: int, results: FitResults, failures: list[Any]
    ) -> tuple[Parameters | None, dict[str, Scalar]]:
        """Hand the kept results to the inner strategy; a round without any changes nothing."""
        rounds, sent = self._rounds, self._rounds.before()
        minus = flat_model(rounds.form, by_position(sent)) if rounds.defence.needs_updates else None
        outcome = rounds.defence.weighed(rounds.judge(server_round, results, failures, minus=minus))
        parameters: Parameters | None = None
        metrics: dict[str, Scalar] = {}
        report = outcome.report
        if outcome.kept:
            passed = rounds.hand_on(outcome)
            result, fault = consult(self.inner, lambda: self.inner.aggregate_fit(server_round, passed, []), _values)
            parameters, metrics = result or (None, {})
            if parameters is None:
                report = outcome.failed(fault or no_model_note(self.inner, len(outcome.kept)))
        if parameters is not None:
            tensors = pinned(rounds.form, by_position(parameters), by_position(sent))
            parameters = Parameters(tensors=list(tensors.values()), tensor_type=parameters.tensor_type)
        rounds.defence.publish(report)
        return parameters, _figures(metrics, report)

    def configure_evaluate(
        self, server_round: int, parameters: Parameters, client_manager: ClientManager
    ) -> list[tuple[ClientProxy, EvaluateIns]]:
        """As the inner strategy does."""
        asked = self.inner.configure_evaluate(server_round, parameters, client_manager)
        self._rounds.asked_to_evaluate = frozenset(proxy.cid for proxy, _ in asked)
        return asked

    def aggregate_evaluate(self, server_round: int, results: EvaluateResults, failures: list[Any]) -> Evaluated:
        """Hand screened results to the inner strategy, each under the weight of the training round."""

        def aggregate(kept: EvaluateResults) -> tuple[Evaluated | None, str]:
            return consult(self.inner, lambda: self.inner.aggregate_evaluate(server_round, kept, []), lambda _: ())

        return self._rounds.evaluate(server_round, results, failures, aggregate)

    def evaluate(self, server_round: int, parameters: Parameters) -> tuple[float, dict[str, Scalar]] | None:
        """As the inner strategy does."""
        return self.inner.evaluate(server_round, parameters)


def _values(result: tuple[Parameters | None, dict[str, Scalar]]) -> list[npt.NDArray[Any]]:
    parameters, _ = result
    return [] if parameters is None else parameters_to_ndarrays(parameters)


def _figures(metrics: dict[str, Scalar], report: RoundReport) -> dict[str, Scalar]:
    figures: dict[str, Scalar] = {"fedra-kept": report.kept, "fedra-rejected": report.rejected}
    figures["fedra-skipped"] = int(report.skipped)
    if report.num_malicious is not None:
        figures["fedra-num-malicious"] = report.num_malicious
    return {**metrics, **figures}
