"""Weighted sums, moments of columns and largest magnitudes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import DTYPES, SEEDS, rounds

from fedra.kernels import column_moments, largest_magnitudes, mixed_rows, weighted_sum


@given(SEEDS, st.integers(1, 20), st.sampled_from([1, 7, 2047, 2049, 16_385]), DTYPES)
def test_weighted_sums_are_taken_in_float64(seed, count, dimension, dtype):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, dimension)).astype(dtype)
    weights = rng.dirichlet(np.ones(count)) * rng.integers(0, 2, count)
    found = weighted_sum(rows, weights)
    assert found.dtype == dtype
    tolerance = 1e-7 if dtype == np.float32 else 1e-14
    np.testing.assert_allclose(found, weights @ rows.astype(np.float64), rtol=tolerance, atol=tolerance)


def test_rows_of_weight_zero_are_not_read():
    rows = np.array([[1.0, 2.0], [np.nan, np.inf], [3.0, 4.0]])
    assert weighted_sum(rows, [0.5, 0.0, 0.5]).tolist() == [2.0, 3.0]
    assert weighted_sum(rows, [0.0, 0.0, 0.0]).tolist() == [0.0, 0.0]


@given(SEEDS, st.integers(1, 20), st.sampled_from([1, 7, 2047, 2049, 16_385]), DTYPES, st.sampled_from([1, 2]))
def test_moments_of_columns_are_taken_in_float64(seed, count, dimension, dtype, threads):
    rng = np.random.default_rng(seed)
    rows = (rng.standard_normal((count, dimension)) * 1e-3 + rng.standard_normal(dimension)).astype(dtype)
    mean, deviation = column_moments(rows, threads=threads)
    exact = rows.astype(np.float64)
    np.testing.assert_allclose(mean, exact.mean(axis=0), rtol=1e-13, atol=1e-15)
    expected = exact.std(axis=0, ddof=1) if count > 1 else np.zeros(dimension)
    np.testing.assert_allclose(deviation, expected, rtol=1e-9, atol=1e-15)


def test_moments_of_equal_rows_are_exact_and_of_none_refused():
    mean, deviation = column_moments(np.full((8, 3), 0.1, dtype=np.float32))
    assert mean.tolist() == [np.float64(np.float32(0.1))] * 3
    assert deviation.tolist() == [0.0] * 3
    with pytest.raises(ValueError, match="no rows"):
        column_moments(np.empty((0, 3)))


@given(SEEDS, st.integers(1, 20), st.sampled_from([1, 7, 2049, 16_385]), DTYPES)
def test_the_largest_magnitude_is_exact(seed, count, dimension, dtype):
    rows = np.random.default_rng(seed).standard_normal((count, dimension)).astype(dtype)
    np.testing.assert_array_equal(largest_magnitudes(rows), np.abs(rows).max(axis=1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", [np.nan, -np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 1, 17, 20_000, -1])
def test_anything_not_finite_is_found_wherever_it_is(dtype, value, place):
    rows = np.ones((3, 33_000), dtype=dtype)
    rows[1, place] = value
    assert np.isfinite(largest_magnitudes(rows)).tolist() == [True, False, True]


def test_the_smallest_and_largest_numbers():
    rows = np.array([[5e-324, -0.0], [-1.7e308, 1.0], [-0.0, 0.0]])
    assert largest_magnitudes(rows).tolist() == [5e-324, 1.7e308, 0.0]


def test_no_columns_and_no_rows():
    assert weighted_sum(np.empty((3, 0)), [1, 0, 0]).shape == (0,)
    assert largest_magnitudes(np.empty((3, 0))).tolist() == [0, 0, 0]
    assert largest_magnitudes([]).tolist() == []


def test_weights_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"weights of shape \(2, 1\) for 3 rows"):
        weighted_sum(np.eye(3), [[1.0], [2.0]])


@given(rounds(), st.integers(1, 12), SEEDS, st.sampled_from([1, 2, None]))
def test_mixed_rows_is_a_product_of_matrices(made, count, seed, threads):
    matrix = np.random.default_rng(seed).standard_normal((count, len(made)))
    matrix[matrix < -0.5] = 0
    expected = matrix @ made.updates.astype(np.float64)
    found = mixed_rows(made.updates, matrix, threads)
    assert found.dtype == made.updates.dtype
    scale = np.abs(matrix) @ np.abs(made.updates.astype(np.float64))
    assert (np.abs(found - expected) <= 1e-6 * scale + 1e-300).all()
    np.testing.assert_array_equal(found, mixed_rows(list(made.updates), matrix, 1))


def test_mixed_rows_wants_a_column_for_each_row():
    with pytest.raises(ValueError, match=r"shape \(2, 4\) for 3 rows; give \(k, 3\)"):
        mixed_rows(np.eye(3), np.ones((2, 4)))
