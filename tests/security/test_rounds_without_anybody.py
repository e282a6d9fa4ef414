"""Rounds from which nobody is left: they change nothing, whatever the rule, and never end the run."""

from __future__ import annotations

import numpy as np
import pytest
from flwr.app import ConfigRecord, Error, Message
from flwr.common import EvaluateRes, FitRes, ndarrays_to_parameters
from tests.flower.federation import MemoryGrid, federation, honest, model, one_round, record
from tests.security.older import OK, older_evaluation, older_round
from tests.security.own_rules import GivenWeights

from fedra import RULES
from fedra.flower import RobustStrategy, legacy


def error(message: Message) -> Message:
    return Message(Error(code=1, reason="out of memory"), reply_to=message)


def silent(message: Message) -> None:
    return None


def few(message: Message) -> Message | None:
    return honest(1)(message) if message.metadata.dst_node_id < 3 else error(message)


@pytest.mark.parametrize("client", [error, silent], ids=["errors", "silence"])
@pytest.mark.parametrize("rule", RULES)
def test_nobody_is_left(rule, client):
    reports: list = []
    strategy = RobustStrategy(rule=rule, on_round=reports.append)
    grid = MemoryGrid(dict.fromkeys(range(1, 7), client))
    sent = record(model())
    arrays, metrics = one_round(strategy, grid, sent)
    assert arrays is None
    assert metrics["fedra-skipped"] == 1
    assert reports[0].note
    messages = strategy.configure_evaluate(1, sent, ConfigRecord(), grid)
    assert strategy.aggregate_evaluate(1, grid.send_and_receive(messages)) is None
    # The run goes on when clients come back.
    arrays, metrics = one_round(strategy, federation(8), sent, 2)
    assert arrays is not None


@pytest.mark.parametrize("rule", RULES)
def test_too_few_are_left(rule):
    """Two of six reply: too few for some rules, which must skip the round and not fail."""
    strategy = RobustStrategy(rule=rule)
    arrays, metrics = one_round(strategy, MemoryGrid(dict.fromkeys(range(1, 7), few)), record(model()))
    assert (arrays is None) == bool(metrics["fedra-skipped"])


@pytest.mark.parametrize("rule", RULES)
def test_nobody_is_left_in_the_older_api(rule):
    sent = [np.ones(3, np.float32)]
    strategy = legacy.RobustStrategy(rule=rule)
    answers = [FitRes(OK, ndarrays_to_parameters(sent), -1, {}) for _ in range(6)]
    parameters, metrics = older_round(strategy, answers, sent)
    assert parameters is None
    assert metrics["fedra-skipped"] == 1
    assert older_evaluation(strategy, [EvaluateRes(OK, float("nan"), 20, {}) for _ in range(6)]) == (None, {})
    assert strategy.aggregate_fit(2, [], [])[0] is None


def test_weights_that_add_up_to_nothing_do_not_end_the_run():
    strategy = RobustStrategy(rule=GivenWeights(weights=(0.0,)))
    _, metrics = one_round(strategy, federation(6), record(model()))
    assert metrics["loss"] == pytest.approx(0.5)
