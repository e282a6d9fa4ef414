from __future__ import annotations

import numpy as np
import pytest
from flwr.serverapp.strategy import FedAvg

from fedra.flower.consult import call_metrics, consult


class Inner(FedAvg):
    def __init__(self) -> None:
        super().__init__()
        self.rounds = 0
        self.momentum = [np.zeros(2)]


def ask(inner, result, *, spoil=None, error: Exception | None = None):
    def call():
        inner.rounds += 1
        inner.momentum[0] += 1
        if spoil is not None:
            inner.momentum[0][0] = spoil
        if error is not None:
            raise error
        return result

    return consult(inner, call, lambda found: found)


def test_a_good_result_is_returned_and_memory_moves():
    inner, result = Inner(), [np.ones(2), np.array([1, 2])]
    assert ask(inner, result) == (result, "")
    assert inner.rounds == 1
    assert inner.momentum[0].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"result": [np.array([np.nan])]}, "the inner strategy returned values that are not finite"),
        ({"result": [], "spoil": np.inf}, "the inner strategy would remember values that are not finite"),
        ({"result": [], "error": KeyError("a\n" * 300)}, "the inner strategy raised KeyError: 'a"),
    ],
)
def test_what_cannot_be_used_is_put_back(options, fault):
    inner = Inner()
    result, why = ask(inner, **options)
    assert result is None
    assert why.startswith(fault)
    assert why.isprintable()
    assert len(why) < 200
    assert inner.rounds == 0
    assert inner.momentum[0].tolist() == [0, 0]


def test_what_was_not_finite_before_is_the_strategys_own_affair():
    inner = Inner()
    inner.best = float("inf")
    assert ask(inner, []) == ([], "")


def test_an_interrupt_is_not_swallowed():
    with pytest.raises(KeyboardInterrupt):
        ask(Inner(), [], error=KeyboardInterrupt())


def test_functions_for_metrics():
    assert call_metrics(lambda a, b: a + b, 1, 2) == (3, "")

    def broken(contents):
        return 1 / 0

    result, fault = call_metrics(broken, [])
    assert result is None
    assert fault == "the function for metrics raised ZeroDivisionError: division by zero"
