"""`RobustStrategy` and `Guard` for `flwr.server.strategy`, Flower's older API: `aggregate_fit` with a rule."""

from __future__ import annotations

import dataclasses
import os
import weakref
from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, TypedDict, Unpack

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
from fedra.audit import AuditTarget, with_audit
from fedra.checks import wrong
from fedra.flower.consult import LOGGER, call_metrics, consult
from fedra.flower.demands import no_model_note, refuse_unfit
from fedra.flower.inner import InnerMemory, check_selects
from fedra.flower.messages import round_figures
from fedra.flower.npy import flat_model, npy_model_form
from fedra.flower.parameters import (
    Evaluated,
    EvaluateResults,
    FitResults,
    by_position,
    evaluate_results,
    fit_results,
    read_evaluate,
    read_fit,
)
from fedra.flower.privacy import needs_equal_weights
from fedra.optimizers import ServerOptimizer
from fedra.rules import DEFAULT_RULE, Rule
from fedra.server import Observer, RoundRecord
from fedra.server.core import Memory, Server
from fedra.server.disk import OnDiskError
from fedra.server.layout import shared_values
from fedra.server.metrics import plain_numbers
from fedra.server.replies import Reply
from fedra.server.step import ServerStep
from fedra.server.weighing import examples

Metrics = dict[str, Scalar]


class DefenceOptions(TypedDict, total=False):
    """The options that both strategies take, as `fedra.flower.RobustStrategy` does."""

    rule: Rule | str
    audit: AuditTarget
    observers: Iterable[Observer]
    on_round: Callable[[RoundRecord], None] | None
    state: str | os.PathLike[str] | None
    threads: int | None
    spill: str | os.PathLike[str] | None
    on_disk_error: OnDiskError
    warn_at: WarningLimits | None


class _Defended(Strategy):
    """What both strategies do around a round.

    Flower counts rounds from 1 in every run; `server.done` rounds were done before, and are added to its count. This
    API does not say when a run ends: observers are let go with the strategy.
    """

    server: Server
    _sent: Parameters | None = None
    _asked_to_evaluate: frozenset[str] | None = None

    def _defend(self, memory: Memory, options: DefenceOptions) -> None:
        given: dict[str, Any] = {"rule": DEFAULT_RULE, **options}
        observers = with_audit(given.pop("audit", None), given.pop("observers", ()))
        self.server = Server(platform="flower", memory=memory, logger=LOGGER, observers=observers, **given)
        weakref.finalize(self, self.server.end)

    @abstractmethod
    def _first_parameters(self, client_manager: ClientManager) -> Parameters | None:
        """Return the model to start from."""

    @abstractmethod
    def _choose_to_fit(
        self, server_round: int, parameters: Parameters, client_manager: ClientManager
    ) -> list[tuple[ClientProxy, FitIns]]:
        """Return whom a training round asks for what."""

    @abstractmethod
    def _choose_to_evaluate(
        self, server_round: int, parameters: Parameters, client_manager: ClientManager
    ) -> list[tuple[ClientProxy, EvaluateIns]]:
        """Return whom an evaluation round asks for what."""

    @abstractmethod
    def _aggregate(
        self, server_round: int, replies: list[Reply], sent: Parameters
    ) -> tuple[Parameters | None, RoundRecord, Callable[[], Metrics]]:
        """Make a model of what could be read of a round's results; the metrics are asked for later."""

    @abstractmethod
    def _evaluate(self, server_round: int, kept: EvaluateResults) -> tuple[Evaluated | None, str]:
        """Evaluate by screened results."""

    def initialize_parameters(self, client_manager: ClientManager) -> Parameters | None:
        """Return the model to start from: that of the saved state where there is one."""
        parameters = self._first_parameters(client_manager)
        saved = self.server.begin(None if parameters is None else npy_model_form(by_position(parameters)))
        return parameters if saved is None else ndarrays_to_parameters(list(saved.arrays.values()))

    def configure_fit(
        self, server_round: int, parameters: Parameters, client_manager: ClientManager
    ) -> list[tuple[ClientProxy, FitIns]]:
        """Choose clients, and remember what they are sent."""
        asked = self._choose_to_fit(server_round + self.server.done, parameters, client_manager)
        self._sent = parameters
        names = {proxy.cid for proxy, _ in asked}
        form = npy_model_form(by_position(parameters), self.server.first)
        self.server.ask(form, names, known=max(client_manager.num_available(), len(names)))
        return asked

    def aggregate_fit(
        self, server_round: int, results: FitResults, failures: list[Any]
    ) -> tuple[Parameters | None, Metrics]:
        """Screen and aggregate; no parameters where the round changed nothing."""
        if self._sent is None:
            raise RuntimeError("aggregate_fit needs the parameters that were sent; call configure_fit first")
        server_round += self.server.done
        replies = read_fit(results, failures, self.server.form, self.server.asked)
        parameters, record, metrics = self._aggregate(server_round, replies, self._sent)
        model = self._sent if parameters is None else parameters
        self.server.save(
            server_round, lambda: dict(zip(by_position(model), parameters_to_ndarrays(model), strict=True))
        )
        found = metrics()
        self.server.publish(dataclasses.replace(record, metrics=plain_numbers(found)))
        return parameters, {**found, **round_figures(record)}

    def configure_evaluate(
        self, server_round: int, parameters: Parameters, client_manager: ClientManager
    ) -> list[tuple[ClientProxy, EvaluateIns]]:
        """Choose clients."""
        asked = self._choose_to_evaluate(server_round + self.server.done, parameters, client_manager)
        self._asked_to_evaluate = frozenset(proxy.cid for proxy, _ in asked)
        return asked

    def aggregate_evaluate(self, server_round: int, results: EvaluateResults, failures: list[Any]) -> Evaluated:
        """Evaluate by screened results, each under the weight of the training round."""
        server_round += self.server.done
        replies = read_evaluate(results, failures, self._asked_to_evaluate)
        kept, weights, record = self.server.defence.judge_evaluation(server_round, replies)
        evaluated, fault = self._evaluate(server_round, evaluate_results(kept, weights))
        loss, metrics = evaluated or (None, {})
        figures = plain_numbers({**(metrics or {}), "loss": loss})
        self.server.publish(dataclasses.replace(record.failed(fault) if fault else record, metrics=figures))
        return loss, metrics


class RobustStrategy(_Defended, FedAvg):
    """As `fedra.flower.RobustStrategy`, for the older API; options that are not its own are those of its FedAvg."""

    def __init__(self, *, server_optimizer: ServerOptimizer | str = "sgd", **options: Any) -> None:
        own: Any = {name: options.pop(name) for name in DefenceOptions.__annotations__ if name in options}
        super().__init__(**options)
        self._step = ServerStep(server_optimizer, owner="RobustStrategy")
        self._defend(self._step, own)

    def _first_parameters(self, client_manager: ClientManager) -> Parameters | None:
        return FedAvg.initialize_parameters(self, client_manager)

    def _choose_to_fit(
        self, server_round: int, parameters: Parameters, client_manager: ClientManager
    ) -> list[tuple[ClientProxy, FitIns]]:
        return FedAvg.configure_fit(self, server_round, parameters, client_manager)

    def _choose_to_evaluate(
        self, server_round: int, parameters: Parameters, client_manager: ClientManager
    ) -> list[tuple[ClientProxy, EvaluateIns]]:
        return FedAvg.configure_evaluate(self, server_round, parameters, client_manager)

    def evaluate(self, server_round: int, parameters: Parameters) -> tuple[float, Metrics] | None:
        """Evaluate on the server as FedAvg does."""
        return FedAvg.evaluate(self, server_round + self.server.done, parameters)

    def _aggregate(
        self, server_round: int, replies: list[Reply], sent: Parameters
    ) -> tuple[Parameters | None, RoundRecord, Callable[[], Metrics]]:
        own = by_position(sent)
        outcome, trained, record = self.server.aggregate(
            self._step, server_round, replies, weights=flat_model(self.server.form, own)
        )
        if trained is None:
            return None, record, dict
        tensors = [
            ndarrays_to_parameters([trained[name]]).tensors[0] if name in trained else data
            for name, data in own.items()
        ]

        def metrics() -> Metrics:
            if not self.fit_metrics_aggregation_fn:
                return {}
            numbers = examples([reply.claim for reply in outcome.kept], outcome.weights)
            weighed = list(zip(numbers, shared_values(outcome.kept), strict=True))
            return call_metrics(self.fit_metrics_aggregation_fn, weighed)[0] or {}

        return Parameters(tensors=tensors, tensor_type=sent.tensor_type), record, metrics

    def _evaluate(self, server_round: int, kept: EvaluateResults) -> tuple[Evaluated | None, str]:
        return call_metrics(FedAvg.aggregate_evaluate, self, server_round, kept, [])


class Guard(_Defended):
    """As `fedra.flower.Guard`, for strategies of the older API."""

    def __init__(self, inner: Strategy, **options: Unpack[DefenceOptions]) -> None:
        if not isinstance(inner, Strategy):
            raise TypeError(wrong("inner", inner, "a strategy of flwr.server.strategy"))
        self.inner = inner
        self._defend(InnerMemory(inner, saved=options.get("state") is not None), options)
        check_selects(self.server.rule)

    def _first_parameters(self, client_manager: ClientManager) -> Parameters | None:
        return self.inner.initialize_parameters(client_manager)

    def _choose_to_fit(
        self, server_round: int, parameters: Parameters, client_manager: ClientManager
    ) -> list[tuple[ClientProxy, FitIns]]:
        return self.inner.configure_fit(server_round, parameters, client_manager)

    def _choose_to_evaluate(
        self, server_round: int, parameters: Parameters, client_manager: ClientManager
    ) -> list[tuple[ClientProxy, EvaluateIns]]:
        return self.inner.configure_evaluate(server_round, parameters, client_manager)

    def evaluate(self, server_round: int, parameters: Parameters) -> tuple[float, Metrics] | None:
        """Evaluate on the server as the inner strategy does."""
        return self.inner.evaluate(server_round + self.server.done, parameters)

    def _aggregate(
        self, server_round: int, replies: list[Reply], sent: Parameters
    ) -> tuple[Parameters | None, RoundRecord, Callable[[], Metrics]]:
        """Hand the kept results to the inner strategy; a round without any changes nothing."""
        defence, form, own = self.server.defence, self.server.form, by_position(sent)
        refuse_unfit(self.inner, replies, form, own)
        minus = flat_model(form, own) if defence.needs_updates else None
        judged = self.server.judge(server_round, replies, minus=minus)
        outcome = defence.weighed(judged, equal=needs_equal_weights(self.inner))
        if not outcome.kept:
            return None, outcome.record, dict
        passed = fit_results(outcome, form, sent)
        result, fault = consult(self.inner, lambda: self.inner.aggregate_fit(server_round, passed, []), _values)
        parameters, metrics = result or (None, {})
        if parameters is None:
            record = outcome.record.failed(fault or no_model_note(self.inner, len(outcome.kept)))
            return None, record, lambda: metrics
        defence.accept(outcome)
        tensors = form.pinned(by_position(parameters), own)
        made = Parameters(tensors=list(tensors.values()), tensor_type=parameters.tensor_type)
        return made, outcome.record, lambda: metrics

    def _evaluate(self, server_round: int, kept: EvaluateResults) -> tuple[Evaluated | None, str]:
        return consult(self.inner, lambda: self.inner.aggregate_evaluate(server_round, kept, []), lambda _: ())


def _values(result: tuple[Parameters | None, Metrics]) -> list[npt.NDArray[Any]]:
    parameters, _ = result
    return [] if parameters is None else parameters_to_ndarrays(parameters)
