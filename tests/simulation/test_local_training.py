from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fedra.models import build_model, parameter_vector
from fedra.simulation.gradients import CohortGradients
from fedra.simulation.local_training import LocalTraining, LocalUpdates

SIZES = (1, 5, 0, 40)
OFFSETS = np.concatenate([[0], np.cumsum(SIZES)])


def order(client: int) -> np.random.Generator:
    return np.random.default_rng([8, client])


def dropout(client: int, layer: int) -> np.random.Generator:
    return np.random.default_rng([9, client, layer])


def network() -> nn.Module:
    return build_model("logistic", input_shape=(1, 8, 8), num_classes=10, seed=0).double()


def samples(shape: tuple[int, ...] = (1, 8, 8)) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(1)
    total = int(OFFSETS[-1])
    return torch.randn(total, *shape, dtype=torch.float64, generator=draw), torch.arange(total) % 10


def test_one_full_batch_step_is_the_scaled_gradient() -> None:
    model = network()
    training = LocalTraining(lr=0.3, steps=1, batch_size=100)
    moved = LocalUpdates(model, training=training)(*samples(), OFFSETS, order=order)
    torch.testing.assert_close(moved, 0.3 * CohortGradients(model)(*samples(), OFFSETS))


@pytest.mark.parametrize("training", [LocalTraining(epochs=3, batch_size=7), LocalTraining(steps=4, batch_size=7)])
def test_each_client_runs_torchs_sgd_from_the_global_weights(training: LocalTraining) -> None:
    model = network()
    inputs, labels = samples()
    moved = LocalUpdates(model, training=training)(inputs, labels, OFFSETS, order=order)
    for client, row in enumerate(moved):
        local = copy.deepcopy(model)
        optimizer = torch.optim.SGD(local.parameters(), lr=training.lr)
        draw, steps = order(client), 0
        limit = training.steps or training.epochs * -(-SIZES[client] // 7)
        while SIZES[client] and steps < limit:
            shuffled = OFFSETS[client] + draw.permutation(SIZES[client])
            for chosen in np.split(shuffled, range(7, SIZES[client], 7))[: limit - steps]:
                optimizer.zero_grad()
                F.cross_entropy(local(inputs[chosen]), labels[chosen]).backward()
                optimizer.step()
                steps += 1
        torch.testing.assert_close(row, parameter_vector(model) - parameter_vector(local))


def test_the_model_is_left_as_it_was_and_the_bits_repeat() -> None:
    model = build_model("cnn28", input_shape=(1, 28, 28), num_classes=10, seed=0).train()
    model.register_buffer("seen", torch.zeros(1))
    model.register_forward_hook(lambda module, arguments, output: module.seen.add_(1) and None)
    inputs, labels = samples((1, 28, 28))
    before = parameter_vector(model)
    updates = LocalUpdates(model, training=LocalTraining(epochs=2, batch_size=8))
    first = updates(inputs.float(), labels, OFFSETS, order=order, dropout=dropout)
    assert torch.equal(parameter_vector(model), before)
    assert model.seen == 0
    assert torch.equal(updates(inputs.float(), labels, OFFSETS, order=order, dropout=dropout), first)
    assert (first[2] == 0).all()
    assert (first[[0, 1, 3]].norm(dim=1) > 0).all()


def test_a_client_moves_the_same_whoever_else_takes_part() -> None:
    inputs, labels = samples()
    updates = LocalUpdates(network(), training=LocalTraining(epochs=2, batch_size=8))
    together = updates(inputs, labels, OFFSETS, order=order)
    alone = updates(inputs[6:], labels[6:], [0, 40], order=lambda client: order(3))
    assert torch.equal(alone[0], together[3])


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"lr": -1.0}, "lr=-1.0; give a finite number above 0"),
        ({"lr": float("inf")}, "lr=inf; give a finite number above 0"),
        ({"epochs": 0}, "epochs=0; give a whole number of at least 1"),
        ({"steps": 0}, "steps=0; give a whole number of at least 1"),
        ({"batch_size": 0}, "batch_size=0; give a whole number of at least 1"),
    ],
)
def test_values_out_of_range_are_rejected(params: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LocalTraining(**params)


def test_values_of_the_wrong_kind_are_rejected() -> None:
    for params in ({"lr": "fast"}, {"epochs": None}, {"steps": 1.5}, {"batch_size": True}):
        with pytest.raises(TypeError, match=f"{next(iter(params))}=.*; give a"):
            LocalTraining(**params)
