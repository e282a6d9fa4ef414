"""Order statistics of columns, against plain sorting."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests import reference
from tests.comparing import assert_near
from tests.strategies import DTYPES, SEEDS

from fedra.kernels import (
    column_mean_around_median,
    column_median,
    column_trimmed_mean,
    column_weighted_median,
    column_weighted_trimmed_mean,
)

COUNTS = st.integers(1, 30)
WIDTHS = st.one_of(st.integers(1, 80), st.sampled_from([128, 1023, 1025]))


def columns(seed, count, dimension, dtype, *, whole=False):
    rng = np.random.default_rng(seed)
    values = rng.integers(-3, 4, (count, dimension)) if whole else rng.standard_normal((count, dimension))
    return values.astype(dtype)


@given(SEEDS, COUNTS, WIDTHS, DTYPES, st.booleans())
def test_the_median_is_exact(seed, count, dimension, dtype, whole):
    rows = columns(seed, count, dimension, dtype, whole=whole)
    expected = np.median(rows.astype(np.float64), axis=0).astype(dtype)
    np.testing.assert_array_equal(column_median(rows), expected)


@given(SEEDS, COUNTS, WIDTHS, DTYPES, st.booleans(), st.integers(0, 14))
def test_the_trimmed_mean(seed, count, dimension, dtype, whole, trim):
    assume(2 * trim < count)
    rows = columns(seed, count, dimension, dtype, whole=whole)
    assert_near(column_trimmed_mean(rows, trim), reference.trimmed_mean(rows, trim), rows)


@given(SEEDS, COUNTS, st.integers(1, 80), DTYPES, st.integers(1, 30))
def test_the_mean_around_the_median(seed, count, dimension, dtype, near):
    assume(near <= count)
    assume(near == count or (count - near) % 2 == 0)
    rows = columns(seed, count, dimension, dtype)
    assert_near(column_mean_around_median(rows, near), reference.mean_around_median(rows, near), rows)


def test_of_two_values_equally_close_to_the_median_the_smaller_counts():
    rows = np.array([[0.0], [1.0], [2.0]])
    assert column_mean_around_median(rows, 2).tolist() == [0.5]


@given(SEEDS, COUNTS, st.integers(1, 80), DTYPES, st.booleans(), st.sampled_from([0.0, 0.1, 0.25, 0.49]))
def test_the_weighted_trimmed_mean(seed, count, dimension, dtype, whole, beta):
    rows = columns(seed, count, dimension, dtype, whole=whole)
    weights = np.random.default_rng(seed).integers(1, 1000, count).astype(float)
    expected = reference.weighted_trimmed_mean(rows, weights, beta)
    assert_near(column_weighted_trimmed_mean(rows, weights, beta), expected, rows)


@given(SEEDS, st.integers(2, 20), DTYPES)
def test_the_weighted_trimmed_mean_does_not_depend_on_order_even_with_ties(seed, count, dtype):
    rows = columns(seed, count, 40, dtype, whole=True)
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 50, count).astype(float)
    order = rng.permutation(count)
    np.testing.assert_array_equal(
        column_weighted_trimmed_mean(rows, weights, 0.1),
        column_weighted_trimmed_mean(rows[order], weights[order], 0.1),
    )


@given(SEEDS, COUNTS, st.integers(1, 80), DTYPES, st.booleans(), st.sampled_from([2, 10, 1000, 2**53]))
def test_the_weighted_median_is_exact(seed, count, dimension, dtype, whole, most):
    rows = columns(seed, count, dimension, dtype, whole=whole)
    rng = np.random.default_rng(seed)
    weights = rng.integers(0, most, count).astype(float) if most < 2**53 else np.exp(rng.uniform(0, 36, count))
    weights[rng.integers(count)] = 1.0
    expected = reference.weighted_median(rows, weights).astype(dtype)
    np.testing.assert_array_equal(column_weighted_median(rows, weights), expected)
    order = rng.permutation(count)
    np.testing.assert_array_equal(column_weighted_median(rows[order], weights[order]), expected)


@pytest.mark.parametrize("weights", [[0, 0, 0], [1, 1], [1, -1, 1], [1, np.nan, 1], [1, np.inf, 1]])
def test_weights_of_a_median_must_be_numbers_of_at_least_zero(weights):
    with pytest.raises(ValueError, match="give each row a number >= 0, not all of them 0"):
        column_weighted_median(np.zeros((3, 2)), weights)


@pytest.mark.parametrize("count", [1, 2, 3, 16, 17, 33, 64])
@pytest.mark.parametrize("dimension", [1, 63, 64, 65, 16_384, 16_385, 40_000])
def test_every_tile_is_written(count, dimension):
    rows = np.random.default_rng(count).permuted(
        np.tile(np.arange(count, dtype=np.float32)[:, np.newaxis], (1, dimension)), axis=0
    )
    expected = np.full(dimension, (count - 1) / 2, dtype=np.float32)
    np.testing.assert_array_equal(column_median(rows), expected)
    np.testing.assert_allclose(column_mean_around_median(rows, count), expected, rtol=1e-6)
    np.testing.assert_allclose(column_weighted_trimmed_mean(rows, np.ones(count), 0.1), expected, rtol=1e-6)


def rough_columns(seed, count, dimension, dtype):
    """Zeros of both signs, the smallest numbers, ties, and numbers of all sizes."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((count, dimension)) * 10.0 ** rng.integers(-30, 30, (count, dimension))
    few = rng.choice([-0.0, 0.0, 0.0, 1e-45, -1e-45, 5e-324, 1.0, -1.0, 1.5], (count, dimension))
    return np.where(rng.random(dimension) < 0.7, few, values).astype(dtype)


def sorted_column(column, weights):
    """Values with their weights, equal values by weight and then by row, as numbers of Python."""
    order = np.lexsort((np.arange(len(column)), weights, column))
    return [float(column[i]) for i in order], [float(weights[i]) for i in order]


def plain_weighted_median(column, weights):
    values, ordered = sorted_column(column, weights)
    half = sum(np.sort(weights).tolist()) / 2
    place, running = 0, ordered[0]
    while running < half and place < len(values) - 1:
        place += 1
        running += ordered[place]
    if running == half and place < len(values) - 1:
        return 0.5 * values[place] + 0.5 * values[place + 1]
    return values[place]


def plain_weighted_trimmed_mean(column, weights, beta):
    values, ordered = sorted_column(column, weights)
    whole = sum(np.sort(weights).tolist())
    ranks, running = [], 0.0
    for weight in ordered:
        running += weight
        ranks.append((running - weight / 2) / whole)

    def quantile(level):
        place = next((i for i, rank in enumerate(ranks) if level <= rank), len(ranks))
        if place in (0, len(ranks)):
            return values[min(place, len(ranks) - 1)]
        left, right = values[place - 1], values[place]
        if level == ranks[place] or left == right:
            return right
        part = (level - ranks[place - 1]) / (ranks[place] - ranks[place - 1])
        return left * (1.0 - part) + right * part

    low, high = quantile(beta), quantile(1.0 - beta)
    inside = total = 0.0
    for value, weight in zip(values, ordered, strict=True):
        if low < value < high:
            inside += weight
            total += value * weight
    return total / inside if inside > 0 else 0.5 * low + 0.5 * high


def plain_mean_around_median(column, near):
    values = sorted(map(float, column))
    count = len(values)
    median = 0.5 * values[(count - 1) // 2] + 0.5 * values[count // 2]
    low = 0
    while low + near < count and median - values[low] > values[low + near] - median:
        low += 1
    total = 0.0
    for value in values[low : low + near]:
        total += value / near
    return total


@given(SEEDS, st.integers(1, 70), st.sampled_from([1, 5, 70]), DTYPES, st.sampled_from([0.0, 0.1, 0.25, 0.49]))
def test_results_are_those_of_plain_loops_to_the_bit(seed, count, dimension, dtype, beta):
    rows = rough_columns(seed, count, dimension, dtype)
    rng = np.random.default_rng(seed)
    # Powers of two: scaling by one leaves every sum what it was.
    weights = 2.0 ** -rng.integers(0, 12, count) * rng.integers(1, 4, count)
    weights /= 2.0 ** np.frexp(weights.max())[1]
    near = int(rng.integers(1, count + 1))

    def assert_same_bits(found, plain):
        with np.errstate(over="ignore"):
            expected = np.array([plain(column) for column in rows.T]).astype(dtype)
        np.testing.assert_array_equal(found.view(f"u{found.itemsize}"), expected.view(f"u{found.itemsize}"))

    assert_same_bits(column_weighted_median(rows, weights), lambda column: plain_weighted_median(column, weights))
    assert_same_bits(
        column_weighted_trimmed_mean(rows, weights, beta),
        lambda column: plain_weighted_trimmed_mean(column, weights, beta),
    )
    assert_same_bits(column_mean_around_median(rows, near), lambda column: plain_mean_around_median(column, near))


def test_a_mean_of_zeros_is_positive_and_a_value_keeps_its_sign():
    for dtype in (np.float32, np.float64):
        rows = np.full((5, 3), -0.0, dtype=dtype)
        for found in (column_median(rows), column_trimmed_mean(rows, 1), column_mean_around_median(rows, 3)):
            assert not np.signbit(found).any()
        assert np.signbit(column_weighted_median(rows, np.arange(1.0, 6.0))).all()
        assert np.signbit(column_weighted_trimmed_mean(rows, np.arange(1.0, 6.0), 0.1)).all()


def test_no_columns():
    rows = np.empty((5, 0), dtype=np.float32)
    for found in (
        column_median(rows),
        column_trimmed_mean(rows, 1),
        column_mean_around_median(rows, 3),
        column_weighted_trimmed_mean(rows, np.ones(5), 0.1),
    ):
        assert found.shape == (0,)
        assert found.dtype == np.float32


def test_huge_and_tiny_weights_together():
    rows = np.array([[0.0], [1.0], [2.0], [3.0]])
    assert column_weighted_trimmed_mean(rows, [1.0, 1.7e308, 1.7e308, 1.0], 0.1)[0] == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda rows: column_trimmed_mean(rows, 2), "trim=2 leaves none of 4 values"),
        (lambda rows: column_trimmed_mean(rows, -1), "trim=-1"),
        (lambda rows: column_mean_around_median(rows, 0), "near=0 is not between 1 and the 4 values"),
        (lambda rows: column_mean_around_median(rows, 5), "near=5"),
        (lambda rows: column_weighted_trimmed_mean(rows, [1.0] * 3, 0.1), r"weights of shape \(3,\) for 4 rows"),
        (lambda rows: column_weighted_trimmed_mean(rows, [1.0, 1.0, 1.0, 0.0], 0.1), "give one positive number"),
        (lambda rows: column_weighted_trimmed_mean(rows, [1.0] * 4, 0.5), "beta=0.5"),
        (lambda rows: column_median([]), "leaves none of 0 values"),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call(np.eye(4))
