from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from fedra.pooling import MaxPoolReLU

SPECIAL = [-0.0, 0.0, float("inf"), -float("inf"), float("nan")]


def bits(values: Tensor) -> Tensor:
    # A NaN is one, whichever: compilers may swap the operands of an addition.
    return torch.where(values.isnan(), torch.full_like(values, torch.nan), values).contiguous().view(torch.uint8)


def laid_out(values: np.ndarray, memory_format: torch.memory_format) -> Tensor:
    tensor = torch.from_numpy(values)
    return torch.empty(tensor.shape, dtype=tensor.dtype, memory_format=memory_format).copy_(tensor)


@given(
    seed=st.integers(0, 2**32 - 1),
    shape=st.tuples(st.integers(0, 3), st.sampled_from([1, 3, 16, 37]), st.integers(2, 9), st.integers(2, 9)),
    dtype=st.sampled_from([np.float32, np.float64]),
    special=st.booleans(),
    memory_format=st.sampled_from([torch.channels_last, torch.contiguous_format]),
)
def test_values_and_gradients_have_the_bits_of_pooling_and_relu(seed, shape, dtype, special, memory_format) -> None:
    rng = np.random.default_rng(seed)
    # Few different values, so that many windows hold their greatest one twice.
    values = rng.integers(-3, 3, shape).astype(dtype)
    if special:
        values = np.where(rng.random(shape) < 0.3, rng.choice(SPECIAL, shape), values).astype(dtype)
    images = laid_out(values, memory_format).requires_grad_()
    found, expected = MaxPoolReLU()(images), F.max_pool2d(images, 2).relu()
    assert torch.equal(bits(found), bits(expected))
    assert found.is_contiguous(memory_format=memory_format)
    upstream = torch.from_numpy(rng.standard_normal(found.shape).astype(dtype))
    mine, theirs = (torch.autograd.grad(pooled, images, upstream)[0] for pooled in (found, expected))
    assert torch.equal(bits(mine), bits(theirs))


def test_half_precision_and_single_images_are_pooled_too() -> None:
    images = torch.arange(-8.0, 8.0).reshape(1, 4, 4)
    for one in (images, images.to(torch.bfloat16)[None]):
        assert torch.equal(MaxPoolReLU()(one), F.max_pool2d(one, 2).relu())


def test_nothing_is_kept_where_no_gradient_is_asked_for() -> None:
    images = torch.randn(2, 3, 4, 4).contiguous(memory_format=torch.channels_last)
    with torch.inference_mode():
        assert not MaxPoolReLU()(images).requires_grad


@pytest.mark.parametrize("memory_format", [torch.channels_last, torch.contiguous_format])
def test_an_image_that_is_too_small_is_an_error_as_in_torch(memory_format) -> None:
    with pytest.raises(RuntimeError, match="Output size is too small"):
        MaxPoolReLU()(torch.zeros(1, 2, 1, 4).contiguous(memory_format=memory_format))
