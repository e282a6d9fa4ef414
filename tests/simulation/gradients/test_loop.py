from __future__ import annotations

import numpy as np
import torch
from torch import nn

from fedra.models import trainable_parameters
from fedra.simulation.gradients.loop import Work, cross_entropy, loop_gradients

OFFSETS = [0, 3, 3, 10]


def work(dropout: object = None) -> Work:
    draw = torch.Generator().manual_seed(0)
    return Work(
        inputs=torch.randn(10, 6, dtype=torch.float64, generator=draw),
        labels=torch.arange(10) % 4,
        offsets=OFFSETS,
        loss=cross_entropy,
        dropout=dropout,  # type: ignore[arg-type]
        memory_format=torch.contiguous_format,
    )


def test_each_client_gets_the_gradient_of_its_own_mean_loss() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 5), nn.PReLU(), nn.Linear(5, 4)).double()
    given = work()
    out = torch.full((3, sum(parameter.numel() for parameter in model.parameters())), 9.0, dtype=torch.float64)
    loop_gradients(model, given, out)
    assert (out[1] == 0).all()
    for client, (start, stop) in ((0, (0, 3)), (2, (3, 10))):
        loss = cross_entropy(model(given.inputs[start:stop]), given.labels[start:stop]).mean()
        expected = torch.cat([g.reshape(-1) for g in torch.autograd.grad(loss, trainable_parameters(model))])
        torch.testing.assert_close(out[client], expected)


def test_running_statistics_do_not_change() -> None:
    model = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4)).double().train()
    loop_gradients(model, work(), torch.empty(3, 6 * 4 + 4 + 8, dtype=torch.float64))
    assert (model[1].running_mean == 0).all()
    assert model[1].num_batches_tracked == 0


def test_a_clients_dropout_comes_from_its_own_generator() -> None:
    asked = []

    def generators(client: int, layer: int) -> np.random.Generator:
        asked.append((client, layer))
        return np.random.default_rng([client, layer])

    model = nn.Sequential(nn.Linear(6, 4), nn.Dropout(0.5)).double().train()
    loop_gradients(model, work(generators), torch.empty(3, 28, dtype=torch.float64))
    assert asked == [(0, 0), (0, 1), (2, 0), (2, 1)]


def test_a_batch_is_a_copy_in_the_wanted_layout() -> None:
    images = torch.randn(4, 3, 5, 5)
    given = Work(
        inputs=images,
        labels=torch.arange(4),
        offsets=[0, 4],
        loss=cross_entropy,
        dropout=None,
        memory_format=torch.channels_last,
    )
    inputs, labels = given.batch(torch.tensor([2, 0]))
    assert inputs.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(inputs, images[[2, 0]])
    assert labels.tolist() == [2, 0]
    inputs.zero_()
    assert images.abs().sum() > 0
