from __future__ import annotations

import numpy as np
import pytest
from tests.server.rounds import FORM, MODEL, honest

from fedra import make_rule
from fedra.optimizers import SGD, Adam
from fedra.server.defence import Defence
from fedra.server.form import view_array
from fedra.server.state import SavedState
from fedra.server.step import ServerStep

WEIGHTS = FORM.flat(FORM.read(MODEL, view_array))


def outcome(*, updates: bool, scale: float = 1.0):
    replies = honest(MODEL, 1)
    with np.errstate(all="ignore"):
        vectors = [np.concatenate(reply.views) for reply in replies]
        vectors = [(scale * (vector - (WEIGHTS if updates else 0))).astype(np.float32) for vector in vectors]
    return Defence(rule=make_rule("uniform")).judge(1, replies, vectors=vectors, known=7)


@pytest.mark.parametrize("updates", [True, False])
def test_plain_descent_goes_where_the_clients_went(updates):
    trained, record = ServerStep("sgd", "tests").take(WEIGHTS, FORM, outcome(updates=updates), of_updates=updates)
    assert list(trained) == ["w", "b"]
    assert not record.note
    for name, array in trained.items():
        assert (array.dtype, array.shape) == (MODEL[name].dtype, MODEL[name].shape)
        np.testing.assert_allclose(array - MODEL[name], 0.01, rtol=0.2)


def test_the_state_moves_only_with_the_model():
    step = ServerStep(SGD(lr=1e42), "tests")
    assert step.memory() == ({}, {})
    trained, _ = step.take(WEIGHTS, FORM, outcome(updates=True, scale=1e-30), of_updates=True)
    assert trained is not None
    trained, record = step.take(WEIGHTS, FORM, outcome(updates=True), of_updates=True)
    assert trained is None
    assert record.note == "the new model would hold values that are not finite"
    assert record.kept == 0
    assert step.memory() == ({}, {"step": 1})


def test_moments_that_are_not_finite_are_not_remembered():
    class Overflowing(Adam):
        def step(self, weights, update, state):
            moved, after = super().step(weights, update, state)
            return moved, type(after)(step=after.step, moments={**after.moments, "second": np.array([np.inf])})

    step = ServerStep(Overflowing(), "tests")
    trained, record = step.take(WEIGHTS, FORM, outcome(updates=True), of_updates=True)
    assert (trained, step.state) == (None, None)
    assert "would remember values that are not finite" in record.note


def test_a_round_without_an_update_changes_nothing():
    empty = Defence(rule="fedavg").judge(1, [], vectors=[], known=0)
    step = ServerStep("adam", "tests")
    assert step.take(WEIGHTS, FORM, empty, of_updates=True) == (None, empty.record)
    assert step.state is None


def saved(**changes) -> SavedState:
    step = ServerStep("adam", "tests")
    step.take(WEIGHTS, FORM, outcome(updates=True), of_updates=True)
    memory, numbers = step.memory()
    return SavedState(**{"round": 1, "writer": "w", "arrays": MODEL, "memory": memory, "numbers": numbers, **changes})


def test_a_saved_state_is_gone_on_from():
    state = saved()
    step = ServerStep("adam", "tests")
    step.recall(state)
    assert step.state.step == 1
    assert step.state.moments["first"].tobytes() == state.memory["first"].tobytes()
    step.begin()
    assert step.state is None
    step.recall(saved(numbers={}, memory={}))
    assert step.state is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"numbers": {"step": -1}}, "step -1"),
        ({"numbers": {"step": "1"}}, "step '1'"),
        ({"memory": {"first": np.zeros(8)}}, "'second' moment"),
        ({"memory": {"first": np.zeros(8), "second": np.zeros(7)}}, "'second' moment"),
        ({"memory": {"first": np.zeros(8), "second": np.full(8, np.nan)}}, "not finite"),
        ({"memory": {"first": np.zeros(8), "second": np.zeros(8, np.int64)}}, "not finite numbers"),
    ],
)
def test_what_is_no_state_of_this_optimizer(changes, reason):
    step = ServerStep("adam", "tests")
    with pytest.raises(ValueError, match=reason):
        step.recall(saved(**changes))
    assert step.state is None


def test_who_writes_the_state():
    assert ServerStep(SGD(lr=0.5), "RobustStrategy").writer == "RobustStrategy with SGD(lr=0.5)"
