"""Names and texts that clients choose, in the log and the audit trail: one line each, nothing that a terminal obeys."""

from __future__ import annotations

import json
import logging

import numpy as np
import pytest
from flwr.app import ConfigRecord, Message
from flwr.common import FitRes, ndarrays_to_parameters
from flwr.server.strategy import FedAvg as LegacyFedAvg
from flwr.serverapp.strategy import FedAvg
from tests.flower.federation import federation, honest, model, one_round, record
from tests.security.older import OK, Proxy, older_round

from fedra.flower import Guard, RobustStrategy, legacy

STRATEGIES = {
    "guard": lambda **options: Guard(FedAvg(), **options),
    "robust": lambda **options: RobustStrategy(**options),
}
OLDER = {
    "guard": lambda **options: legacy.Guard(LegacyFedAvg(), **options),
    "robust": lambda **options: legacy.RobustStrategy(**options),
}
NODES = {
    "a number too long to write": 10**5000,
    "beyond 64 bits": -(2**64),
    "true": True,
    "lines": "2\nround 9: 8 kept",
    "escapes": "\x1b[2J",
    "surrogates": "\ud800",
}


def check_lines(path, caplog) -> None:
    assert all("\n" not in entry.getMessage() and "\x1b" not in entry.getMessage() for entry in caplog.records)
    for line in path.read_bytes().splitlines():
        assert json.loads(line)["kind"] in ("client", "round")


@pytest.mark.parametrize("make", STRATEGIES.values(), ids=STRATEGIES)
@pytest.mark.parametrize("node", NODES.values(), ids=NODES)
def test_a_node_of_any_name(node, make, tmp_path, caplog):
    caplog.set_level(logging.INFO, logger="flwr")

    def client(message: Message) -> Message:
        reply = honest(1)(message)
        reply.metadata.__dict__["_src_node_id"] = node
        return reply

    arrays, metrics = one_round(make(audit=tmp_path / "audit.jsonl"), federation(8, node_1=client), record(model()))
    assert arrays is not None
    assert (metrics["fedra-kept"], metrics["fedra-rejected"]) == (7, 1)
    check_lines(tmp_path / "audit.jsonl", caplog)


@pytest.mark.parametrize("make", STRATEGIES.values(), ids=STRATEGIES)
def test_records_that_are_not_named_by_text(make):
    """Their senders are too many for one layout to count, so that all of it would be handed on."""
    names = iter([None, 3, 0.5, ("a",), b"arrays"])

    def client(message: Message) -> Message:
        reply = honest(message.metadata.dst_node_id)(message)
        reply.content.__dict__["_data"][next(names)] = ConfigRecord()
        return reply

    grid = federation(14, **{f"node_{node}": client for node in range(1, 6)})
    arrays, metrics = one_round(make(), grid, record(model()))
    assert arrays is not None
    assert metrics["fedra-rejected"] == 5

    names = iter([None, 3, 0.5, ("a",), b"arrays"])
    grid = federation(5, **{f"node_{node}": client for node in range(1, 6)})
    arrays, metrics = one_round(make(), grid, record(model()))
    assert arrays is None
    assert metrics["fedra-rejected"] == 5


class Unspeakable(Exception):
    """An error that cannot say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize("make", OLDER.values(), ids=OLDER)
def test_failures_of_any_name(make, tmp_path, caplog):
    caplog.set_level(logging.INFO, logger="flwr")
    sent = [np.ones(3, np.float32)]
    answers = []
    for seed in range(8):
        arrays = [np.float32(1.01) + np.random.default_rng(seed).normal(0, 0.001, 3).astype(np.float32)]
        answers.append(FitRes(OK, ndarrays_to_parameters(arrays), 20, {}))
    strategy = make(audit=tmp_path / "audit.jsonl")
    older_round(strategy, answers, sent)
    failures = [Unspeakable(), ValueError("\n\x1b[2J" * 10_000), (Proxy("a\nb\x1b[2J"), answers[0])]
    results = [(Proxy(str(place)), answer) for place, answer in enumerate(answers)]
    for number in range(2, 8):
        parameters, metrics = strategy.aggregate_fit(number, results, failures)
        assert parameters is not None
        assert metrics["fedra-rejected"] == 3
    check_lines(tmp_path / "audit.jsonl", caplog)
