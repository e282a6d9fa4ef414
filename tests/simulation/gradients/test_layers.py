from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.simulation.gradients.checking import Projected, check, chunks, images, sizes
from torch import nn


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
