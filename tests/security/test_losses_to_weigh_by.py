"""Strategies that weigh by losses, and clients who make theirs up."""

from __future__ import annotations

import numpy as np
import pytest
from flwr.serverapp.strategy import QFedAvg
from tests.flower.federation import arrays_of, federation, model, moved, one_round, record, reply_to

from fedra.flower import Guard


def moved_by(loss: float, q: float) -> float:
    """How far the model moves when one of ten clients, honest otherwise, says its loss is this; the others' is 0.5."""

    def client(message):
        return reply_to(
            message,
            moved(message.content["arrays"], np.random.default_rng(1)),
            {"loss": loss, "num-examples": 20},
        )

    sent = record(model())
    strategy = Guard(QFedAvg(client_learning_rate=0.1, q=q, train_loss_key="loss"))
    arrays, metrics = one_round(strategy, federation(10, node_1=client), sent)
    assert metrics["fedra-kept"] == 10
    pairs = zip(arrays_of(arrays).values(), arrays_of(sent).values(), strict=True)
    return float(np.mean([np.mean(after - before) for after, before in pairs]))


@pytest.mark.parametrize("loss", [0.0, 5e-324, 1e-300, 1e-9, 1e-4])
@pytest.mark.parametrize("q", [0.1, 0.5, 1.0, 2.0])
def test_a_loss_of_zero_does_not_stop_the_model(loss, q):
    assert moved_by(loss, q) > 0.5 * moved_by(0.5, q)


def test_losses_that_are_all_zero_are_weighed_alike():
    """Nobody's is made larger then: the least that counts is a tenth of the median, which is zero."""

    def client(message):
        arrays = moved(message.content["arrays"], np.random.default_rng(message.metadata.dst_node_id))
        return reply_to(message, arrays, {"loss": 0.0, "num-examples": 20})

    nodes = {f"node_{node}": client for node in range(1, 11)}
    _, metrics = one_round(
        Guard(QFedAvg(client_learning_rate=0.1, train_loss_key="loss")), federation(10, **nodes), record(model())
    )
    assert metrics["fedra-kept"] == 10
    assert metrics["loss"] == 0.0
