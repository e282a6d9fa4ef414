from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedra.data.images import standardise


@given(
    shape=st.tuples(st.integers(0, 5), st.integers(1, 3), st.integers(1, 4), st.integers(1, 4)),
    scale=st.sampled_from([16.0, 255.0]),
    seed=st.integers(0, 100),
)
def test_each_channel_has_its_own_mean_and_spread(shape: tuple[int, ...], scale: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 256, shape, np.uint8)
    mean, std = rng.uniform(0, 1, shape[1]).tolist(), rng.uniform(0.1, 1, shape[1]).tolist()
    expected = (pixels / scale - np.reshape(mean, (-1, 1, 1))) / np.reshape(std, (-1, 1, 1))
    found = standardise(pixels, mean=mean, std=std, scale=scale)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, expected.astype(np.float32))


def test_more_images_than_a_block_holds() -> None:
    pixels = np.arange(2500, dtype=np.uint8).reshape(2500, 1, 1, 1)
    found = standardise(pixels, mean=[0.5], std=[0.25])
    np.testing.assert_array_equal(found, ((pixels / 255 - 0.5) / 0.25).astype(np.float32))


def test_a_mean_without_its_spread_is_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        standardise(np.zeros((1, 2, 1, 1), np.uint8), mean=[0.0, 0.0], std=[1.0])
