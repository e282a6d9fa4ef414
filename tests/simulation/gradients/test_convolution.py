from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.simulation.gradients.checking import Projected, check, chunks, images, sizes
from torch import nn


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
