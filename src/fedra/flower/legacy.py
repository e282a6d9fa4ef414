"""`RobustStrategy` and `Guard` for `flwr.server.strategy`, Flower's older API: `aggregate_fit` with a rule.

Parameters carry no names here: arrays are known by their position.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

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
)
from flwr.server.client_manager import ClientManager
from flwr.server.client_proxy import ClientProxy
from flwr.server.strategy import FedAvg, Strategy

from fedra.audit import RoundReport
from fedra.flower.defence import AuditTarget, Defence, Outcome, flat_vectors
from fedra.flower.disk import OnDiskError
from fedra.flower.examples import examples
from fedra.flower.guard import check_selects
from fedra.flower.model import ModelForm, Unusable, model_form, short
from fedra.flower.privacy import no_model_note, refuse_still
from fedra.flower.replies import Reply, read_all, read_claim
from fedra.flower.step import ServerStep
from fedra.flower.updates import flat_model
from fedra.optimizers import ServerOptimizer
from fedra.rules import Rule

FitResults = list[tuple[ClientProxy, FitRes]]
EvaluateResults = list[tuple[ClientProxy, EvaluateRes]]


class _Rounds:
    """What both adapters do with a round: remember what was sent, screen, judge."""

    def __init__(self, defence: Defence, inner: Strategy | None = None) -> None:
        self.defence = defence
        self.inner = inner
        self.form = ModelForm(entries=())
        self.first: ModelForm | None = None
        self.sent: Parameters | None = None
        self.asked: frozenset[str] = frozenset()
        self.known = 0

    def send(self, parameters: Parameters, manager: ClientManager, asked: Sequence[tuple[ClientProxy, FitIns]]) -> None:
        self.sent = parameters
        self.form = model_form(_by_position(parameters), self.first)
        self.first = self.first or self.form
        self.asked = frozenset(proxy.cid for proxy, _ in asked)
        self.known = manager.num_available()

    def before(self) -> Parameters:
        """Return what was sent."""
        if self.sent is None:
            raise RuntimeError("aggregate_fit needs the parameters that were sent; call configure_fit first")
        return self.sent

    def judge(
        self, server_round: int, results: FitResults, failures: Sequence[Any], *, minus: npt.NDArray[Any] | None
    ) -> Outcome:
        def fill(reply: Reply) -> None:
            answer = reply.message
            _check_status(answer)
            reply.views = self.form.read(_by_position(answer.parameters))
            reply.claim, reply.metrics = read_claim(answer.num_examples, "num_examples"), answer.metrics
            reply.form = ("", "", tuple(sorted((key, None) for key in answer.metrics)))
            _check_metrics(answer.metrics)

        replies = read_all([Reply(client=proxy.cid, message=answer) for proxy, answer in results], fill, self.asked)
        replies += _failed(failures)
        refuse_still(self.inner, replies, self.form, _by_position(self.before()))
        vectors = flat_vectors(replies, self.form, minus=minus, release=_keep, threads=self.defence.threads)
        return self.defence.judge(server_round, replies, vectors=vectors, known=self.known)

    def evaluations(self, server_round: int, results: EvaluateResults, failures: Sequence[Any]) -> EvaluateResults:
        """Return the results to evaluate by, each under the weight of the training round."""

        def fill(reply: Reply) -> None:
            answer = reply.message
            _check_status(answer)
            reply.claim = read_claim(answer.num_examples, "num_examples")
            reply.form = ("", "", tuple(sorted((key, None) for key in answer.metrics)))
            _check_metrics({"loss": answer.loss, **answer.metrics})

        proxies = {id(answer): proxy for proxy, answer in results}
        replies = read_all([Reply(client=proxy.cid, message=answer) for proxy, answer in results], fill, None)
        kept, weights = self.defence.judge_evaluation(server_round, [*replies, *_failed(failures)])
        numbers = examples([reply.claim for reply in kept], weights)
        return [
            (proxies[id(reply.message)], dataclasses.replace(reply.message, num_examples=number))
            for reply, number in zip(kept, numbers, strict=True)
        ]


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
        **fedavg: Any,
    ) -> None:
        super().__init__(**fedavg)
        self._rounds = _Rounds(
            Defence(rule=rule, audit=audit, on_round=on_round, threads=threads, on_disk_error=on_disk_error)
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
        weights = flat_model(form, _by_position(sent))
        minus = weights if self._rounds.defence.needs_updates else None
        outcome = self._rounds.judge(server_round, results, failures, minus=minus)
        trained, report = self._step.take(weights, form, outcome, of_updates=minus is not None)
        self._rounds.defence.publish(report)
        if trained is None:
            return None, _figures({}, report)
        tensors = [
            ndarrays_to_parameters([trained[name]]).tensors[0] if name in trained else data
            for name, data in _by_position(sent).items()
        ]
        metrics = {}
        if self.fit_metrics_aggregation_fn:
            weighed = zip(examples([reply.claim for reply in outcome.kept], outcome.weights), outcome.kept, strict=True)
            metrics = self.fit_metrics_aggregation_fn([(number, reply.metrics) for number, reply in weighed])
        return Parameters(tensors=tensors, tensor_type=sent.tensor_type), _figures(metrics, report)

    def aggregate_evaluate(
        self, server_round: int, results: EvaluateResults, failures: list[Any]
    ) -> tuple[float | None, dict[str, Scalar]]:
        """Average over screened results by the weights of training."""
        return super().aggregate_evaluate(server_round, self._rounds.evaluations(server_round, results, failures), [])


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
    ) -> None:
        if not isinstance(inner, Strategy):
            raise TypeError(f"inner={inner!r}; give a strategy of flwr.server.strategy")
        self.inner = inner
        self._rounds = _Rounds(
            Defence(rule=rule, audit=audit, on_round=on_round, threads=threads, on_disk_error=on_disk_error), inner
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
        defence, sent = self._rounds.defence, self._rounds.before()
        minus = flat_model(self._rounds.form, _by_position(sent)) if defence.needs_updates else None
        outcome = defence.weighed(self._rounds.judge(server_round, results, failures, minus=minus))
        metrics: dict[str, Scalar] = {}
        parameters, report = None, outcome.report
        if outcome.kept:
            try:
                parameters, metrics = self.inner.aggregate_fit(server_round, _passed_on(outcome, results), [])
                note = "" if parameters else no_model_note(self.inner, len(outcome.kept))
            except Exception as error:
                note = f"the inner strategy raised {type(error).__name__}: {short(error, 200)}"
            if note:
                parameters, metrics, report = None, {}, outcome.failed(note)
        defence.publish(report)
        return parameters, _figures(metrics, report)

    def configure_evaluate(
        self, server_round: int, parameters: Parameters, client_manager: ClientManager
    ) -> list[tuple[ClientProxy, EvaluateIns]]:
        """As the inner strategy does."""
        return self.inner.configure_evaluate(server_round, parameters, client_manager)

    def aggregate_evaluate(
        self, server_round: int, results: EvaluateResults, failures: list[Any]
    ) -> tuple[float | None, dict[str, Scalar]]:
        """Hand screened results to the inner strategy, each under the weight of the training round."""
        kept = self._rounds.evaluations(server_round, results, failures)
        return self.inner.aggregate_evaluate(server_round, kept, [])

    def evaluate(self, server_round: int, parameters: Parameters) -> tuple[float, dict[str, Scalar]] | None:
        """As the inner strategy does."""
        return self.inner.evaluate(server_round, parameters)


def _by_position(parameters: Parameters) -> dict[str, bytes]:
    return {str(place): tensor for place, tensor in enumerate(parameters.tensors)}


def _passed_on(outcome: Outcome, results: FitResults) -> FitResults:
    """Return the kept clients' results, each with the number of examples that gives it its weight."""
    proxies = {id(answer): proxy for proxy, answer in results}
    answers = [reply.message for reply in outcome.kept]
    numbers = outcome.claims or [answer.num_examples for answer in answers]
    return [
        (proxies[id(answer)], dataclasses.replace(answer, num_examples=number))
        for answer, number in zip(answers, numbers, strict=True)
    ]


def _keep(reply: Reply) -> None:
    """Leave a result as it is: here the caller holds on to it."""


def _check_status(answer: FitRes | EvaluateRes) -> None:
    if answer.status.code != Code.OK:
        raise Unusable(f"replied with status {short(answer.status.code)}: {short(answer.status.message)}")


def _check_metrics(metrics: dict[str, Any]) -> None:
    for key, value in metrics.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise Unusable(f"metric {short(key)} is not finite")


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
