from __future__ import annotations

import torch
from hypothesis import given, settings
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


@settings(max_examples=60, deadline=None)
@given(
    clients=sizes,
    chunk=chunks,
    channels=st.sampled_from([(1, 4), (2, 6), (12, 2), (4, 8)]),
    kernel=st.tuples(st.integers(1, 3), st.integers(1, 4)),
    stride=st.tuples(st.integers(1, 2), st.integers(1, 3)),
    padding=st.one_of(st.just("valid"), st.tuples(st.integers(0, 2), st.integers(0, 1))),
    dilation=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    padding_mode=st.sampled_from(["zeros", "reflect", "circular"]),
    bias=st.booleans(),
    grouped=st.booleans(),
)
def test_conv2d(clients, chunk, channels, kernel, stride, padding, dilation, padding_mode, bias, grouped) -> None:
    groups = 2 if grouped and channels[0] % 2 == 0 else 1
    layer = nn.Conv2d(
        *channels,
        kernel,
        stride=stride,
        padding=padding,
        dilation=dilation,
        padding_mode=padding_mode,
        bias=bias,
        groups=groups,
    )
    check(Projected(nn.Conv2d(channels[0], channels[0], 1), layer), images(clients, channels[0], 7, 9), clients, chunk)


@settings(max_examples=30, deadline=None)
@given(
    clients=sizes,
    chunk=chunks,
    channels=st.sampled_from([(1, 4), (12, 2), (4, 20)]),
    kernel=st.integers(1, 4),
    stride=st.integers(1, 3),
    padding=st.sampled_from(["valid", 0, 2]),
    dilation=st.integers(1, 2),
    padding_mode=st.sampled_from(["zeros", "reflect"]),
)
def test_conv1d(clients, chunk, channels, kernel, stride, padding, dilation, padding_mode) -> None:
    layer = nn.Conv1d(*channels, kernel, stride=stride, padding=padding, dilation=dilation, padding_mode=padding_mode)
    check(
        Projected(nn.Conv1d(channels[0], channels[0], 1), layer),
        images(clients, channels[0], 1, 11)[:, :, 0],
        clients,
        chunk,
    )


@settings(max_examples=20, deadline=None)
@given(clients=sizes, chunk=chunks, kernel=st.tuples(st.integers(1, 4), st.integers(1, 4)))
def test_same_padding(clients, chunk, kernel) -> None:
    model = Projected(nn.Conv2d(2, 5, kernel, padding="same"), nn.Conv2d(5, 3, kernel, padding="same"))
    check(model, images(clients, 2, 6, 7), clients, chunk)


@settings(max_examples=20, deadline=None)
@given(clients=sizes, chunk=chunks, positions=st.sampled_from([(), (1,), (3,), (2, 3)]), bias=st.booleans())
def test_linear_over_positions(clients, chunk, positions, bias) -> None:
    draw = torch.Generator().manual_seed(2)
    inputs = torch.randn(sum(clients), *positions, 5, dtype=torch.float64, generator=draw)
    check(Projected(nn.Linear(5, 4, bias=bias), nn.Tanh(), nn.Linear(4, 3, bias=bias)), inputs, clients, chunk)


@settings(max_examples=20, deadline=None)
@given(clients=sizes, chunk=chunks, padding_idx=st.sampled_from([None, 0]), shape=st.sampled_from([(4,), (2, 3)]))
def test_embedding(clients, chunk, padding_idx, shape) -> None:
    inputs = torch.randint(0, 6, (sum(clients), *shape), generator=torch.Generator().manual_seed(3))
    check(Projected(nn.Embedding(6, 3, padding_idx=padding_idx), nn.Linear(3, 2)), inputs, clients, chunk)


@settings(max_examples=20, deadline=None)
@given(clients=sizes, chunk=chunks, over=st.sampled_from([(9,), (7, 9), (4, 7, 9)]), bias=st.booleans())
def test_layer_norm(clients, chunk, over, bias) -> None:
    norm = nn.LayerNorm(over, bias=bias)
    nn.init.normal_(norm.weight)
    check(Projected(nn.Conv2d(2, 4, 1), norm), images(clients, 2, 7, 9), clients, chunk)


@settings(max_examples=20, deadline=None)
@given(clients=sizes, chunk=chunks, groups=st.sampled_from([1, 2, 4]))
def test_group_norm(clients, chunk, groups) -> None:
    norm = nn.GroupNorm(groups, 4)
    nn.init.normal_(norm.weight)
    check(Projected(nn.Conv2d(2, 4, 1), norm, nn.ReLU(inplace=True)), images(clients, 2, 5, 6), clients, chunk)


@settings(max_examples=10, deadline=None)
@given(clients=sizes, chunk=chunks)
def test_partly_frozen_layers_give_columns_for_the_rest_only(clients, chunk) -> None:
    convolution, linear, norm = nn.Conv2d(2, 3, 2), nn.Linear(6, 4), nn.LayerNorm(4)
    convolution.weight.requires_grad_(False)
    linear.bias.requires_grad_(False)
    norm.weight.requires_grad_(False)
    check(Projected(convolution, linear, norm), images(clients, 2, 5, 7), clients, chunk)
