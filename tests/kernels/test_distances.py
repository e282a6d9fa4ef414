"""Pairwise distances, norms and distances to a mean, against float64 taken one pair after the other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import reference
from tests.strategies import DTYPES, SEEDS

from fedra.kernels import distances_to_mean, distances_to_point, norms, pairwise_l1, pairwise_squared_l2

DIMENSIONS = [1, 7, 1023, 1025, 16_384, 16_385, 50_000]


def close_rows(seed, count, dimension, spread, dtype=np.float32):
    rng = np.random.default_rng(seed)
    base = rng.standard_normal(dimension)
    return (base + spread * rng.standard_normal((count, dimension))).astype(dtype)


def relative_error(found, expected):
    apart = expected > 0
    assert (found[~apart] == 0).all()
    return np.max(np.abs(found - expected)[apart] / expected[apart], initial=0.0)


@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize("spread", [1.0, 1e-2, 1e-4])
def test_l1_keeps_its_digits_when_updates_lie_close(dimension, spread):
    rows = close_rows(dimension, 5, dimension, spread)
    assert relative_error(pairwise_l1(rows), reference.pairwise_l1(rows)) < 1e-7


@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize("spread", [1.0, 1e-3])
def test_squared_l2_keeps_its_digits_when_updates_lie_close(dimension, spread):
    rows = close_rows(dimension, 5, dimension, spread)
    assert relative_error(pairwise_squared_l2(rows), reference.pairwise_squared_l2(rows)) < 1e-6


@pytest.mark.parametrize("dimension", [1, 1025, 16_385])
@pytest.mark.parametrize("kernel", ["pairwise_l1", "pairwise_squared_l2"])
def test_float64_is_float64_throughout(kernel, dimension):
    rows = close_rows(1, 6, dimension, 1e-6, np.float64)
    found = {"pairwise_l1": pairwise_l1, "pairwise_squared_l2": pairwise_squared_l2}[kernel](rows)
    assert relative_error(found, getattr(reference, kernel)(rows)) < 1e-13


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_number_of_rows(dtype):
    rng = np.random.default_rng(0)
    for count in range(1, 61):
        rows = rng.standard_normal((count, 37)).astype(dtype)
        assert relative_error(pairwise_l1(rows), reference.pairwise_l1(rows)) < 1e-7
        assert relative_error(pairwise_squared_l2(rows), reference.pairwise_squared_l2(rows)) < 1e-6


@given(SEEDS, st.integers(1, 40), st.integers(1, 3000), DTYPES)
def test_distances_are_symmetric_with_a_zero_diagonal(seed, count, dimension, dtype):
    rows = close_rows(seed, count, dimension, 0.1, dtype)
    for distances in (pairwise_l1(rows), pairwise_squared_l2(rows)):
        assert distances.dtype == np.float64
        assert distances.shape == (count, count)
        np.testing.assert_array_equal(distances, distances.T)
        assert (np.diagonal(distances) == 0).all()
        assert (distances >= 0).all()


@given(SEEDS, st.integers(2, 20), st.sampled_from([1, 5, 8, 1000, 1030, 17_000]), DTYPES)
def test_equal_rows_have_equal_distances_wherever_they_stand(seed, count, dimension, dtype):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, dimension)).astype(dtype)
    first, second = rng.permutation(count)[:2]
    rows[second] = rows[first]
    others = np.setdiff1d(np.arange(count), [first, second])
    for distances in (pairwise_l1(rows), pairwise_squared_l2(rows)):
        assert distances[first, second] == 0
        np.testing.assert_array_equal(distances[first, others], distances[second, others])


@pytest.mark.parametrize("value", [3.4e38, 1e20, 1e-20, 1e-45])
@pytest.mark.parametrize("dimension", [3, 2000, 6000])
def test_float32_sums_neither_overflow_nor_underflow(value, dimension):
    rng = np.random.default_rng(4)
    rows = (rng.choice([-1.0, 1.0], (6, dimension)) * value).astype(np.float32)
    assert relative_error(pairwise_l1(rows), reference.pairwise_l1(rows)) < 1e-6
    assert relative_error(pairwise_squared_l2(rows), reference.pairwise_squared_l2(rows)) < 1e-6
    np.testing.assert_allclose(norms(rows), np.linalg.norm(rows.astype(np.float64), axis=1), rtol=1e-12)


@pytest.mark.parametrize("kernel", [pairwise_l1, pairwise_squared_l2])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_what_is_not_finite_stays_visible(kernel, value):
    for dtype in (np.float32, np.float64):
        rows = np.ones((4, 2000), dtype=dtype)
        rows[1, 1500] = value
        distances = kernel(rows)
        assert not np.isfinite(distances[1, [0, 2, 3]]).any()
        assert distances[0, 2] == 0


@pytest.mark.parametrize("spread", [1.0, 1e-3, 1e-6])
@given(SEEDS, st.integers(1, 20), st.sampled_from([1, 7, 1025, 4096, 4097, 9000]), DTYPES)
def test_distances_to_the_weighted_mean_keep_their_digits_when_updates_lie_close(spread, seed, count, dimension, dtype):
    rows = close_rows(seed, count, dimension, spread, dtype)
    weights = np.random.default_rng(seed).dirichlet(np.full(count, 0.5))
    wide = rows.astype(np.float64) - rows[0].astype(np.float64)
    expected = np.linalg.norm(wide - weights @ wide, axis=1)
    tolerance = 1e-6 if dtype == np.float32 else 1e-9
    farthest = np.max(reference.pairwise_squared_l2(wide)) ** 0.5
    np.testing.assert_allclose(
        distances_to_mean(rows, weights), expected, rtol=tolerance, atol=tolerance * float(farthest)
    )


@given(SEEDS, st.integers(1, 20), st.integers(1, 3000), DTYPES)
def test_norms(seed, count, dimension, dtype):
    rows = close_rows(seed, count, dimension, 1.0, dtype)
    np.testing.assert_allclose(norms(rows), np.linalg.norm(rows.astype(np.float64), axis=1), rtol=1e-13)


def test_no_columns_and_no_rows():
    for kernel in (pairwise_l1, pairwise_squared_l2):
        assert kernel(np.empty((4, 0))).tolist() == np.zeros((4, 4)).tolist()
        assert kernel(np.empty((0, 4))).shape == (0, 0)
        assert kernel([]).shape == (0, 0)
    assert norms(np.empty((3, 0))).tolist() == [0, 0, 0]
    assert distances_to_mean(np.empty((3, 0)), [0.5, 0.25, 0.25]).tolist() == [0, 0, 0]


def test_weights_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"weights of shape \(2,\) for 3 rows"):
        distances_to_mean(np.eye(3), [0.5, 0.5])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dimension", [1, 300, 5000])
def test_distances_to_a_point(dtype, dimension):
    rng = np.random.default_rng(dimension)
    rows = rng.standard_normal((7, dimension)).astype(dtype)
    point = rng.standard_normal(dimension).astype(dtype)
    rows[3] = point
    expected = np.linalg.norm(rows.astype(np.float64) - point, axis=1)
    found = distances_to_point(rows, point)
    np.testing.assert_allclose(found, expected, rtol=1e-6 if dtype == np.float32 else 1e-12)
    assert found[3] == 0


def test_a_point_beyond_float32_is_cut_to_it():
    assert np.isfinite(distances_to_point(np.ones((3, 2), dtype=np.float32), np.full(2, 1e100))).all()
