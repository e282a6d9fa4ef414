"""What both strategies of Flower's older API do with a round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy.typing as npt
from flwr.common import Code, EvaluateRes, FitIns, FitRes, Parameters, Scalar, Status
from flwr.server.client_manager import ClientManager
from flwr.server.client_proxy import ClientProxy

from fedra.flower.canonical import canonical_tensors
from fedra.flower.claims import read_claim, read_metrics, read_number
from fedra.flower.defence import Defence, Outcome, failed
from fedra.flower.examples import examples
from fedra.flower.faults import Unusable, short
from fedra.flower.layout import Layout, shared_metrics
from fedra.flower.model import ModelForm, model_form
from fedra.flower.privacy import refuse_still, refuse_without_norm_bit
from fedra.flower.replies import Reply, read_all
from fedra.flower.updates import flat_vectors

FitResults = list[tuple[ClientProxy, FitRes]]
EvaluateResults = list[tuple[ClientProxy, EvaluateRes]]
Evaluated = tuple[float | None, dict[str, Scalar]]

_OK = Status(code=Code.OK, message="")


class Rounds:
    """What both adapters do with a round: remember what was sent, screen, judge, and hand on what was kept."""

    def __init__(self, defence: Defence, inner: Any = None) -> None:
        self.defence = defence
        self.inner = inner
        self.form = ModelForm(entries=())
        self.first: ModelForm | None = None
        self.sent: Parameters | None = None
        self.asked: frozenset[str] = frozenset()
        self.asked_to_evaluate: frozenset[str] | None = None
        self.known = 0

    def send(self, parameters: Parameters, manager: ClientManager, asked: Sequence[tuple[ClientProxy, FitIns]]) -> None:
        """Remember what is sent, and to whom."""
        self.sent = parameters
        self.form = model_form(by_position(parameters), self.first)
        self.first = self.first or self.form
        self.asked = frozenset(proxy.cid for proxy, _ in asked)
        self.known = max(manager.num_available(), len(self.asked))

    def before(self) -> Parameters:
        """Return what was sent."""
        if self.sent is None:
            raise RuntimeError("aggregate_fit needs the parameters that were sent; call configure_fit first")
        return self.sent

    def judge(
        self, server_round: int, results: FitResults, failures: Sequence[Any], *, minus: npt.NDArray[Any] | None
    ) -> Outcome:
        """Screen and judge a round's results, as updates from `minus` where that is given."""

        def fill(reply: Reply) -> None:
            answer = reply.message[1]
            _check_status(answer)
            if (count := len(answer.parameters.tensors)) != len(self.form.entries):
                raise Unusable(f"{count} arrays instead of {len(self.form.entries)}")
            reply.views = self.form.read(by_position(answer.parameters))
            reply.claim = read_claim(answer.num_examples, "num_examples")
            reply.metrics, kinds = read_metrics(answer.metrics, words=True)
            reply.layout = Layout(values=kinds)

        replies = [*read_all(_replies(results), fill, self.asked, Layout()), *_failed(failures)]
        refuse_without_norm_bit(self.inner, replies)
        refuse_still(self.inner, replies, self.form, by_position(self.before()))
        vectors = flat_vectors(replies, self.form, minus=minus, release=_keep, threads=self.defence.threads)
        return self.defence.judge(server_round, replies, vectors=vectors, known=self.known)

    def hand_on(self, outcome: Outcome) -> FitResults:
        """Return the kept results in the server's own form, each with the number of examples that gives its weight."""
        sent, tensor_type = by_position(self.before()), self.before().tensor_type
        keys = shared_metrics(outcome.kept)
        # The older API counts examples in whole numbers, so a claim of 1.5 cannot be handed on as it is.
        numbers = outcome.claims or examples([reply.claim for reply in outcome.kept], outcome.weights)
        passed = []
        for reply, number in zip(outcome.kept, numbers, strict=True):
            proxy, answer = reply.message
            tensors = canonical_tensors(self.form, by_position(answer.parameters), sent)
            made = FitRes(
                status=_OK,
                parameters=Parameters(tensors=tensors, tensor_type=tensor_type),
                num_examples=number,
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
        keys = shared_metrics(kept)
        passed = []
        for reply, number in zip(kept, examples([reply.claim for reply in kept], weights), strict=True):
            proxy, _ = reply.message
            metrics = {key: reply.metrics[key] for key in keys}
            passed.append((proxy, EvaluateRes(_OK, losses[id(reply)], number, metrics)))
        evaluated, fault = aggregate(passed)
        self.defence.publish(failed(report, fault) if fault else report)
        return (None, {}) if evaluated is None else evaluated


def by_position(parameters: Parameters) -> dict[str, bytes]:
    """Return arrays that have no names under their places."""
    return {str(place): tensor for place, tensor in enumerate(parameters.tensors)}


def _keep(reply: Reply) -> None:
    """Leave a result as it is: here the caller holds on to it."""


def _check_status(answer: FitRes | EvaluateRes) -> None:
    if answer.status.code != Code.OK:
        raise Unusable(f"replied with status {short(answer.status.code)}: {short(answer.status.message)}")


def _replies(results: Sequence[tuple[ClientProxy, Any]]) -> list[Reply]:
    return [Reply(client=proxy.cid, message=(proxy, answer)) for proxy, answer in results]


def _failed(failures: Sequence[Any]) -> list[Reply]:
    replies = []
    for failure in failures:
        if isinstance(failure, BaseException):
            fault = f"failed: {type(failure).__name__}: {short(failure)}"
            replies.append(Reply(client="unknown", message=failure, fault=fault, asked=False))
        else:
            replies.append(Reply(client=failure[0].cid, message=failure[1], fault="failed"))
    return replies
