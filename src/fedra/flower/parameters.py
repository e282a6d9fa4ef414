"""Results of Flower's older API, read and written: parameters carry no names, arrays are known by their position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flwr.common import Code, EvaluateRes, FitRes, Parameters, Scalar, Status
from flwr.server.client_proxy import ClientProxy

from fedra.flower.messages import arrange
from fedra.flower.npy import canonical_npy, is_canonical, view_npy
from fedra.server.defence import Outcome
from fedra.server.faults import Unusable, short
from fedra.server.form import Entry, ModelForm
from fedra.server.layout import Layout, shared_values
from fedra.server.metrics import read_metrics, read_number
from fedra.server.replies import Reply, read_all
from fedra.server.weighing import examples

FitResults = list[tuple[ClientProxy, FitRes]]
EvaluateResults = list[tuple[ClientProxy, EvaluateRes]]
Evaluated = tuple[float | None, dict[str, Scalar]]

_OK = Status(code=Code.OK, message="")


def read_fit(results: FitResults, failures: Sequence[Any], form: ModelForm, asked: frozenset[Any]) -> list[Reply]:
    """Read the results of a training round, failures last."""

    def fill(reply: Reply) -> None:
        answer = reply.message[1]
        _check_status(answer)
        if (count := len(answer.parameters.tensors)) != len(form.entries):
            raise Unusable(f"{count} arrays instead of {len(form.entries)}")
        reply.views = form.read(by_position(answer.parameters), view_npy)
        reply.take_claim(answer.num_examples, "num_examples")
        _take_metrics(reply, answer)

    return [*read_all(_replies(results), fill, asked, Layout()), *_failed(failures)]


def read_evaluate(results: EvaluateResults, failures: Sequence[Any], asked: frozenset[Any] | None) -> list[Reply]:
    """Read the results of an evaluation round, failures last; each reply's message becomes its proxy and its loss."""

    def fill(reply: Reply) -> None:
        proxy, answer = reply.message
        _check_status(answer)
        reply.take_claim(answer.num_examples, "num_examples")
        reply.message = proxy, float(read_number("loss", answer.loss))
        _take_metrics(reply, answer)

    return [*read_all(_replies(results), fill, asked, Layout()), *_failed(failures)]


def fit_results(outcome: Outcome, form: ModelForm, sent: Parameters) -> FitResults:
    """Return the kept results in the server's own form, each with the number of examples that gives its weight."""
    own = by_position(sent)
    # The older API counts examples in whole numbers, so a claim of 1.5 cannot be handed on as it is.
    numbers = outcome.claims or examples([reply.claim for reply in outcome.kept], outcome.weights)
    passed = []
    for reply, number, metrics in zip(outcome.kept, numbers, shared_values(outcome.kept), strict=True):
        proxy, answer = reply.message
        tensors = _canonical_tensors(form, by_position(answer.parameters), own)
        parameters = Parameters(tensors=tensors, tensor_type=sent.tensor_type)
        passed.append((proxy, FitRes(status=_OK, parameters=parameters, num_examples=number, metrics=metrics)))
    return passed


def evaluate_results(kept: Sequence[Reply], weights: Sequence[float]) -> EvaluateResults:
    """Return the kept results, each with the number of examples that gives its weight."""
    numbers = examples([reply.claim for reply in kept], weights)
    return [
        (reply.message[0], EvaluateRes(_OK, reply.message[1], number, metrics))
        for reply, number, metrics in zip(kept, numbers, shared_values(kept), strict=True)
    ]


def by_position(parameters: Parameters) -> dict[str, bytes]:
    """Return arrays that have no names under their places."""
    return {str(place): tensor for place, tensor in enumerate(parameters.tensors)}


def _canonical_tensors(form: ModelForm, reply: dict[str, bytes], sent: dict[str, bytes]) -> list[bytes]:
    """Return a reply that `form` can read as a list of .npy bytes; those that are canonical already are not copied."""
    views = iter(form.read(reply, view_npy))

    def tensor(entry: Entry) -> bytes:
        data, values = reply[entry.name], next(views)
        return data if is_canonical(entry, data, values) else canonical_npy(entry, values)

    return [data for _, data in arrange(form, tensor, sent)]


def _take_metrics(reply: Reply, answer: FitRes | EvaluateRes) -> None:
    reply.metrics, kinds = read_metrics(answer.metrics, words=True)
    reply.layout = Layout(values=kinds)


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
