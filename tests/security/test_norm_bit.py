"""Wrappers that learn their clipping norm from what clients say, and a client that does not say it."""

from __future__ import annotations

import flwr.server.strategy as older
import flwr.serverapp.strategy as current
import numpy as np
import pytest
from flwr.common import FitRes, ndarrays_to_parameters
from tests.flower.federation import MemoryGrid, model, moved, one_round, record, reply_to
from tests.security.older import OK, older_round

from fedra.flower import Guard, legacy
from fedra.flower.demands import KEY_NORM_BIT

# Honest clients come in three layouts, so that none has more than half, and nobody is dropped for its own.
NODES = 10
MISSING = {"nothing": {}, "a list": {KEY_NORM_BIT: [1]}}


def metrics_of(node: int) -> dict:
    return {"loss": 0.5, f"only-{node % 3}": 1.0, KEY_NORM_BIT: 1}


@pytest.mark.parametrize("missing", MISSING.values(), ids=MISSING)
def test_one_client_without_it_does_not_cost_the_round(missing):
    def client(message):
        node = message.metadata.dst_node_id
        metrics = metrics_of(node) if node > 1 else {"loss": 0.5, **missing}
        arrays = moved(message.content["arrays"], np.random.default_rng(node))
        return reply_to(message, arrays, {**metrics, "num-examples": 20})

    reports: list = []
    inner = current.DifferentialPrivacyClientSideAdaptiveClipping(current.FedAvg(), 0.1, NODES)
    grid = MemoryGrid(dict.fromkeys(range(1, NODES + 1), client))
    arrays, _ = one_round(Guard(inner, on_round=reports.append), grid, record(model()))
    assert arrays is not None, reports[0].note
    assert [entry["client"] for entry in reports[0].clients if not entry["kept"]] == [1]
    assert KEY_NORM_BIT in reports[0].clients[0]["reason"]


@pytest.mark.parametrize("missing", [{}, {KEY_NORM_BIT: "yes"}, {KEY_NORM_BIT: True}], ids=["nothing", "text", "truth"])
def test_one_client_without_it_does_not_cost_the_round_in_the_older_api(missing):
    sent, answers = [np.ones((3, 4), np.float32)], []
    for node in range(NODES):
        arrays = [(sent[0] + np.random.default_rng(node).normal(0.01, 0.001, (3, 4))).astype(np.float32)]
        metrics = metrics_of(node) if node else {"loss": 0.5, **missing}
        answers.append(FitRes(OK, ndarrays_to_parameters(arrays), 20, metrics))
    reports: list = []
    inner = older.DifferentialPrivacyClientSideAdaptiveClipping(older.FedAvg(), 0.1, NODES)
    result, _ = older_round(legacy.Guard(inner, on_round=reports.append), answers, sent)
    assert result is not None, reports[0].note
    assert [entry["client"] for entry in reports[0].clients if not entry["kept"]] == ["0"]
