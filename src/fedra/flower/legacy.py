"""`RobustStrategy` and `Guard` for `flwr.server.strategy`, Flower's older API: `aggregate_fit` with a rule.

Parameters carry no names here: arrays are known by their position.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from flwr.common import (
    Code,
    EvaluateIns,
    EvaluateRes,
    FitIns,
    FitRes,
    Parameters,
    Scalar,
    ndarrays_to_parameters,
    parameters_to_ndarrays,
)
from flwr.server.client_manager import ClientManager
from flwr.server.client_proxy import ClientProxy
from flwr.server.strategy import FedAvg, Strategy

from fedra.audit import RoundReport
from fedra.flower.canonical import canonical_tensors, pinned
from fedra.flower.claims import read_claim, read_metrics, read_number
from fedra.flower.consult import call_metrics, consult
from fedra.flower.defence import AuditTarget, Defence, Outcome, failed, flat_vectors
from fedra.flower.faults import Unusable, short
from fedra.flower.guard import check_selects
from fedra.flower.layout import Layout, shared_metrics
from fedra.flower.model import ModelForm, model_form
from fedra.flower.replies import Reply, read_all
from fedra.flower.step import ServerStep
from fedra.optimizers import ServerOptimizer
from fedra.rules import Rule

FitResults = list[tuple[ClientProxy, FitRes]]
EvaluateResults = list[tuple[ClientProxy, EvaluateRes]]
Evaluated = tuple[float | None, dict[str, Scalar]]


class _Rounds:
    """What both adapters do with a round: remember what was sent, screen, judge, and hand on what was kept."""

    def __init__(self, defence: Defence) -> None:
        self.defence = defence
        self.form = ModelForm(entries=())
        self.first: ModelForm | None = None
        self.sent: Parameters | None = None
        self.asked: frozenset[str] = frozenset()
        self.asked_to_evaluate: frozenset[str] | None = None
        self.known = 0

    def send(self, parameters: Parameters, manager: ClientManager, asked: Sequence[tuple[ClientProxy, FitIns]]) -> None:
        self.sent = parameters
        self.form = model_form(_by_position(parameters), self.first)
        self.first = self.first or self.form
        self.asked = frozenset(proxy.cid for proxy, _ in asked)
        self.known = max(manager.num_available(), len(self.asked))

    def judge(
        self, server_round: int, results: FitResults, failures: Sequence[Any], *, minus: npt.NDArray[Any] | None
    ) -> Outcome:
        def fill(reply: Reply) -> None:
            answer = reply.message[1]
            _check_status(answer)
            reply.views = self.form.read(_by_position(answer.parameters))
            reply.claim = read_claim(answer.num_examples, "num_examples")
            reply.metrics, kinds = read_metrics(answer.metrics, words=True)
            reply.layout = Layout(values=kinds)

        replies = [*read_all(_replies(results), fill, self.asked, Layout()), *_failed(failures)]
        vectors = flat_vectors(replies, self.form, minus=minus, release=_keep, threads=self.defence.threads)
        return self.defence.judge(server_round, replies, vectors=vectors, known=self.known)

    def hand_on(self, outcome: Outcome) -> FitResults:
        """Return the kept results in the server's own form."""
        assert self.sent is not None
        sent = _by_position(self.sent)
        keys = shared_metrics(outcome.kept)
        passed = []
        for reply in outcome.kept:
            proxy, answer = reply.message
            tensors = canonical_tensors(self.form, _by_position(answer.parameters), sent)
            made = FitRes(
                status=answer.status,
                parameters=Parameters(tensors=tensors, tensor_type=self.sent.tensor_type),
                num_examples=round(reply.claim),
                metrics={key: reply.metrics[key] for key in keys},
            )
            passed.append((proxy, made))
        return passed

    def evaluate(
        self,
        server_round: int,
        results: EvaluateResults,
        failures: Sequence[Any],
        aggregate: Callable[[EvaluateResults], tuple[Evaluated | None, str]],
    ) -> Evaluated:
        """Let `aggregate` evaluate by the screened results, each under the weight of the training round."""
        losses: dict[int, float] = {}

        def fill(reply: Reply) -> None:
            answer = reply.message[1]
            _check_status(answer)
            reply.claim = read_claim(answer.num_examples, "num_examples")
            losses[id(reply)] = float(read_number("loss", answer.loss))
            reply.metrics, kinds = read_metrics(answer.metrics, words=True)
            reply.layout = Layout(values=kinds)

        replies = [*read_all(_replies(results), fill, self.asked_to_evaluate, Layout()), *_failed(failures)]
        kept, weights, report = self.defence.judge_evaluation(server_round, replies)
        unit = sum(reply.claim for reply in kept) / sum(weights) if kept else 0.0
        keys = shared_metrics(kept)
        passed = []
        for reply, weight in zip(kept, weights, strict=True):
            proxy, answer = reply.message
            metrics = {key: reply.metrics[key] for key in keys}
            num_examples = max(1, round(weight * unit))
            passed.append((proxy, EvaluateRes(answer.status, losses[id(reply)], num_examples, metrics)))
        evaluated, fault = aggregate(passed)
        self.defence.publish(failed(report, fault) if fault else report)
        return (None, {}) if evaluated is None else evaluated


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
        **fedavg: Any,
    ) -> None:
        super().__init__(**fedavg)
        self._rounds = _Rounds(Defence(rule=rule, audit=audit, on_round=on_round, threads=threads))
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
        form, sent = self._rounds.form, self._rounds.sent
        if sent is None:
            raise RuntimeError("aggregate_fit needs the parameters that were sent; call configure_fit first")
        before = _by_position(sent)
        weights = np.empty(form.dimension, dtype=form.dtype)
        form.flatten(form.read(before), weights)
        minus = weights if self._rounds.defence.needs_updates else None
        outcome = self._rounds.judge(server_round, results, failures, minus=minus)
        trained, report = self._step.take(weights, form, outcome, of_updates=minus is not None)
        self._rounds.defence.publish(report)
        if trained is None:
            return None, _figures({}, report)
        tensors = [
            ndarrays_to_parameters([trained[name]]).tensors[0] if name in trained else data
            for name, data in before.items()
        ]
        metrics: dict[str, Scalar] | None = {}
        if self.fit_metrics_aggregation_fn:
            unit, keys = sum(reply.claim for reply in outcome.kept), shared_metrics(outcome.kept)
            weighed = [
                (max(1, round(weight * unit)), {key: reply.metrics[key] for key in keys})
                for reply, weight in zip(outcome.kept, outcome.weights, strict=True)
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
    ) -> None:
        if not isinstance(inner, Strategy):
            raise TypeError(f"inner={inner!r}; give a strategy of flwr.server.strategy")
        self.inner = inner
        self._rounds = _Rounds(Defence(rule=rule, audit=audit, on_round=on_round, threads=threads))
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
        rounds, sent = self._rounds, self._rounds.sent
        if sent is None:
            raise RuntimeError("aggregate_fit needs the parameters that were sent; call configure_fit first")
        outcome = rounds.judge(server_round, results, failures, minus=None)
        parameters: Parameters | None = None
        metrics: dict[str, Scalar] = {}
        report = outcome.report
        if outcome.kept:
            passed = rounds.hand_on(outcome)
            result, fault = consult(self.inner, lambda: self.inner.aggregate_fit(server_round, passed, []), _values)
            if result is None:
                report = outcome.failed(fault)
            else:
                parameters, metrics = result
        if parameters is not None:
            tensors = pinned(rounds.form, _by_position(parameters), _by_position(sent))
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


def _by_position(parameters: Parameters) -> dict[str, bytes]:
    return {str(place): tensor for place, tensor in enumerate(parameters.tensors)}


def _keep(reply: Reply) -> None:
    """Leave a result as it is: here the caller holds on to it."""


def _check_status(answer: FitRes | EvaluateRes) -> None:
    if answer.status.code != Code.OK:
        raise Unusable(f"replied with status {short(answer.status.code)}: {short(answer.status.message)}")


def _replies(results: Sequence[tuple[ClientProxy, Any]]) -> list[Reply]:
    return [Reply(client=proxy.cid, message=(proxy, answer)) for proxy, answer in results]


def _values(result: tuple[Parameters | None, dict[str, Scalar]]) -> list[npt.NDArray[Any]]:
    parameters, _ = result
    return [] if parameters is None else parameters_to_ndarrays(parameters)


def _failed(failures: Sequence[Any]) -> list[Reply]:
    replies = []
    for failure in failures:
        if isinstance(failure, BaseException):
            fault = f"failed: {type(failure).__name__}: {short(str(failure))}"
            replies.append(Reply(client="unknown", message=failure, fault=fault))
        else:
            replies.append(Reply(client=failure[0].cid, message=failure[1], fault="failed"))
    return replies


def _figures(metrics: dict[str, Scalar], report: RoundReport) -> dict[str, Scalar]:
    figures: dict[str, Scalar] = {"fedra-kept": report.kept, "fedra-rejected": report.rejected}
    figures["fedra-skipped"] = int(report.skipped)
    if report.num_malicious is not None:
        figures["fedra-num-malicious"] = report.num_malicious
    return {**metrics, **figures}
