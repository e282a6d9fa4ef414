from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.reference import attacks as reference

from fedra.data import Dataset, load_dataset
from fedra.simulation import SimulationConfig
from fedra.simulation.clients import Clients, make_model
from fedra.simulation.federation import Federation, make_federation

SOME = np.array([3, 17, 90])


@cache
def digits() -> Dataset:
    return load_dataset("digits")


def prepared(**given: Any) -> tuple[Clients, Federation]:
    config = SimulationConfig.from_dict(given)
    federation = make_federation(config, digits())
    return Clients(config, digits(), federation.partition), federation


def other_weights(clients: Clients) -> np.ndarray:
    weights = clients.initial_weights()
    return weights + np.random.default_rng(0).normal(0, 0.1, len(weights)).astype(np.float32)


def test_the_initial_weights_come_from_the_seed_and_are_a_copy() -> None:
    clients, _ = prepared()
    first = clients.initial_weights()
    np.testing.assert_array_equal(prepared()[0].initial_weights(), first)
    assert (prepared(seed=1)[0].initial_weights() != first).any()
    clients.load(other_weights(clients))
    assert (clients.initial_weights() != first).any()


def test_each_client_computes_on_its_own_data_with_the_loaded_weights() -> None:
    clients, federation = prepared()
    weights = other_weights(clients)
    clients.load(weights)
    rows = clients.updates(SOME, 0)
    for client, row in zip(SOME, rows, strict=True):
        held = federation.partition.indices(int(client))
        labels = digits().train_labels[held]
        expected = reference.logistic_gradient(weights, digits().train_inputs[held], labels, 10)
        np.testing.assert_allclose(row, expected, rtol=1e-4, atol=1e-6)
    assert clients.updates(SOME[:0], 0).shape == (0, len(weights))


def test_other_labels_lead_to_other_updates_and_stay_with_the_call() -> None:
    clients, _ = prepared()
    honest = clients.updates(SOME, 0)
    flipped = clients.updates(SOME, 0, relabel=lambda labels: 9 - labels)
    assert (honest != flipped).any(axis=1).all()
    np.testing.assert_array_equal(clients.updates(SOME, 0), honest)


@pytest.mark.parametrize("given", [{"local_steps": 2}, {"local_epochs": 1}])
def test_local_training_draws_by_round_and_client_alone(given: dict[str, int]) -> None:
    clients, _ = prepared(batch_size=2, **given)
    together = clients.updates(SOME, 4)
    np.testing.assert_array_equal(clients.updates(SOME[1:2], 4)[0], together[1])
    assert (clients.updates(SOME, 5) != together).any()


def test_accuracy_is_the_share_of_right_answers_in_percent() -> None:
    clients, _ = prepared()
    weights = other_weights(clients)
    clients.load(weights)
    scores = digits().test_inputs.reshape(len(digits().test_labels), -1) @ weights[:640].reshape(10, 64).T
    right = ((scores + weights[640:]).argmax(axis=1) == digits().test_labels).mean()
    assert clients.measure().accuracy == pytest.approx(100 * right, abs=0.5)
    assert clients.measure().accuracy == clients.measure().accuracy


def test_the_model_is_the_one_made_for_the_data_unless_named() -> None:
    config = SimulationConfig(model="logistic")
    assert [p.numel() for p in make_model(config, digits()).parameters()] == [640, 10]
    with pytest.raises(ValueError, match="needs images of 16x16 or more"):
        make_model(SimulationConfig(model="cnn28"), digits())
