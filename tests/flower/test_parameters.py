from __future__ import annotations

import math

import numpy as np
import pytest
from flwr.common import Code, EvaluateRes, FitRes, Parameters, Status, ndarrays_to_parameters, parameters_to_ndarrays
from hypothesis import given
from hypothesis import strategies as st
from tests.security.older import OK, Proxy

from fedra import make_rule
from fedra.flower.npy import npy_model_form
from fedra.flower.parameters import by_position, evaluate_results, fit_results, read_evaluate, read_fit
from fedra.server.defence import Defence

SENT = ndarrays_to_parameters([np.ones((2, 2), np.float32), np.asarray(3), np.zeros(1, np.float16)])
FORM = npy_model_form(by_position(SENT))
EVERYBODY = frozenset(map(str, range(20)))


def fit(place: int = 0, **changes) -> FitRes:
    rng = np.random.default_rng(place)
    arrays = [rng.standard_normal((2, 2)).astype(np.float32), np.asarray(4), rng.standard_normal(1).astype(np.float16)]
    good = {"status": OK, "parameters": ndarrays_to_parameters(arrays), "num_examples": 20, "metrics": {"loss": 0.5}}
    return FitRes(**{**good, **changes})


def named(answers):
    return [(Proxy(str(place)), answer) for place, answer in enumerate(answers)]


def test_results_are_read_by_position():
    (reply,) = read_fit(named([fit()]), [], FORM, EVERYBODY)
    assert (reply.client, reply.fault, reply.claim, reply.metrics) == ("0", "", 20.0, {"loss": 0.5})
    assert [view.size for view in reply.views] == [4, 1]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (fit(status=Status(Code.FIT_NOT_IMPLEMENTED, "no\n")), "replied with status"),
        (fit(parameters=Parameters([], "")), "0 arrays instead of 3"),
        (fit(parameters=ndarrays_to_parameters([np.ones(4, np.float32)] * 3)), "array '0' has shape (4,)"),
        (fit(num_examples=0), "'num_examples' is 0"),
        (fit(num_examples="20"), "'num_examples'"),
        (fit(metrics={"loss": math.inf}), "not finite"),
        (fit(parameters=None), "cannot be read: AttributeError"),
    ],
)
def test_what_is_wrong_with_a_result(answer, reason):
    good, bad = read_fit(named([fit(), answer]), [], FORM, EVERYBODY)
    assert not good.fault
    assert reason in bad.fault
    assert bad.fault.isprintable()


@given(st.lists(st.sampled_from([None, 3, "x", fit(), fit(metrics=None), fit(status=None)]), max_size=5), st.booleans())
def test_reading_never_raises(answers, evaluation):
    read = read_evaluate(named(answers), [], EVERYBODY) if evaluation else read_fit(named(answers), [], FORM, EVERYBODY)
    assert len(read) == len(answers)
    assert all(reply.fault or not evaluation for reply in read)


def test_words_are_metrics_here():
    (reply,) = read_fit(named([fit(metrics={"by": "me", "ok": True, "raw": b"x"})]), [], FORM, EVERYBODY)
    assert reply.metrics == {"by": "me", "ok": True, "raw": b"x"}


def test_failures_come_last():
    failures = [ConnectionError("gone\n"), (Proxy("7"), fit())]
    replies = read_fit(named([fit()]), failures, FORM, EVERYBODY)
    assert [reply.fault for reply in replies] == ["", "failed: ConnectionError: gone?", "failed"]
    assert [reply.client for reply in replies] == ["0", "unknown", "7"]
    assert [reply.asked for reply in replies] == [True, False, True]


def outcome_of(answers, rule: str = "fedavg"):
    replies = read_fit(named(answers), [], FORM, EVERYBODY)
    vectors = [FORM.flat(reply.views) for reply in replies if not reply.fault]
    defence = Defence(rule=make_rule(rule))
    return defence.weighed(defence.judge(1, replies, vectors=vectors, known=len(replies)))


def test_results_are_handed_on_in_the_servers_form():
    arrays = [np.asfortranarray(np.arange(4, dtype=">f4").reshape(2, 2)), np.asarray(99), np.ones(1, np.float16)]
    answers = [fit(parameters=ndarrays_to_parameters(arrays), metrics={"loss": 1.0}), fit(1, num_examples=60)]
    passed = fit_results(outcome_of(answers), FORM, SENT)
    assert [result.num_examples for _, result in passed] == [20, 60]
    assert passed[0][1].parameters.tensors[1] == SENT.tensors[1]
    assert (
        passed[0][1].parameters.tensors[0]
        == ndarrays_to_parameters([np.arange(4, dtype=np.float32).reshape(2, 2)]).tensors[0]
    )
    # What is in that form already is not copied.
    assert passed[1][1].parameters.tensors[0] is answers[1].parameters.tensors[0]
    assert all(result.status is OK or result.status.code == Code.OK for _, result in passed)


def test_examples_are_whole_numbers_in_proportion_to_the_weights():
    passed = fit_results(outcome_of([fit(num_examples=1.5), fit(1, num_examples=4.5)]), FORM, SENT)
    first, second = (result.num_examples for _, result in passed)
    assert type(first) is type(second) is int
    assert second == pytest.approx(3 * first, rel=1e-5)
    alike = fit_results(outcome_of([fit(num_examples=5), fit(1, num_examples=2**50)], "uniform"), FORM, SENT)
    assert len({result.num_examples for _, result in alike}) == 1


def evaluation(loss=0.5, **changes) -> EvaluateRes:
    return EvaluateRes(**{"status": OK, "loss": loss, "num_examples": 20, "metrics": {"accuracy": 0.5}, **changes})


def test_evaluations():
    answers = [
        evaluation(),
        evaluation(math.nan),
        evaluation("low"),
        evaluation(num_examples=-1),
        evaluation(metrics=3),
    ]
    replies = read_evaluate(named(answers), [], None)
    assert not replies[0].fault
    assert "'loss' is not finite" in replies[1].fault
    assert "'loss' holds str" in replies[2].fault
    assert "num_examples" in replies[3].fault
    assert "cannot be read" in replies[4].fault
    ((proxy, result),) = evaluate_results(replies[:1], [0.7])
    assert (proxy.cid, result.loss, result.num_examples, result.metrics) == ("0", 0.5, 20, {"accuracy": 0.5})
    assert evaluate_results([], []) == []


def test_places_are_names():
    assert list(by_position(SENT)) == ["0", "1", "2"]
    assert [array.dtype.kind for array in parameters_to_ndarrays(SENT)] == ["f", "i", "f"]
