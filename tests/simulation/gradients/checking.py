"""Layers under test, compared with autograd in float64."""

from __future__ import annotations

import torch
from hypothesis import strategies as st
from torch import Tensor, nn

from fedra.models import trainable_parameters
from fedra.simulation.gradients import CohortGradients

sizes = st.lists(st.sampled_from([0, 1, 1, 1, 2, 5, 20, 50]), min_size=1, max_size=7).filter(any)
chunks = st.sampled_from([1, 4, 17, 192])


class Projected(nn.Module):
    """Layers under test between a trained projection of the input and a sum that weighs every output differently."""

    def __init__(self, *layers: nn.Module):
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, inputs: Tensor) -> Tensor:
        outputs = self.layers(inputs).flatten(1)
        return outputs * torch.arange(1.0, outputs.shape[1] + 1.0, dtype=outputs.dtype).cos()


def squared(outputs: Tensor, labels: Tensor) -> Tensor:
    return (outputs + labels[:, None]).square().sum(1)


def check(model: nn.Module, inputs: Tensor, clients: list[int], chunk: int) -> None:
    model = model.double()
    labels = torch.arange(len(inputs)) % 3
    offsets = [0, *torch.tensor(clients).cumsum(0).tolist()]
    gradients = CohortGradients(model, loss=squared, chunk=chunk)
    found = gradients(inputs, labels, offsets)
    assert gradients.engine == "segmented"
    for row, start, stop in zip(found, offsets, offsets[1:], strict=False):
        if start == stop:
            assert (row == 0).all()
            continue
        loss = squared(model(inputs[start:stop]), labels[start:stop]).mean()
        grads = torch.autograd.grad(loss, trainable_parameters(model))
        expected = torch.cat([grad.reshape(-1) for grad in grads])
        torch.testing.assert_close(row, expected, rtol=1e-9, atol=1e-9 * float(expected.abs().max()))


def images(clients: list[int], channels: int, height: int, width: int) -> Tensor:
    draw = torch.Generator().manual_seed(1)
    return torch.randn(sum(clients), channels, height, width, dtype=torch.float64, generator=draw)
