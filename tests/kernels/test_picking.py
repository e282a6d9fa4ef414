"""Sums of nearest distances and repeated picks, against scoring everybody anew each time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies import SEEDS

from fedra.kernels import nearest_sums, pairwise_squared_l2, repeated_nearest, squared_l2_triangle
from fedra.kernels.picking_compiled import added_up


def all_at_once(distances, neighbours):
    others = distances.copy()
    np.fill_diagonal(others, np.inf)
    return np.sort(others, axis=1)[:, :neighbours].sum(axis=1)


def one_after_the_other(distances, assumed, count):
    left, chosen = np.arange(len(distances)), []
    for _ in range(count):
        neighbours = min(max(1, len(left) - assumed - 2), len(left) - 1)
        best = np.argsort(all_at_once(distances[np.ix_(left, left)], neighbours), kind="stable")[0]
        chosen.append(left[best])
        left = np.delete(left, best)
    return chosen


def distances_of(kind, rng, count):
    points = {
        "plain": lambda: rng.standard_normal((count, 5)),
        "whole": lambda: rng.integers(0, 3, (count, 2)).astype(float),
        "equal": lambda: np.ones((count, 3)),
        "corners": lambda: np.eye(count) * rng.choice([1.0, 1.0, 0.1]),
        "clusters": lambda: rng.integers(0, 3, (count, 1)) * 1e5 + rng.integers(0, 2, (count, 1)) * 1e-7,
        "far and near": lambda: rng.standard_normal((count, 2)) * 10.0 ** rng.integers(-60, 130, (count, 1)),
        "close calls": lambda: np.float64(1) + rng.integers(0, 4, (count, 3)) * np.finfo(float).eps,
    }[kind]()
    return pairwise_squared_l2(points)


KINDS = ["plain", "whole", "equal", "corners", "clusters", "far and near", "close calls"]


@pytest.mark.parametrize("kind", KINDS)
@given(SEEDS, st.integers(3, 40), st.integers(0, 9))
@settings(max_examples=40)
def test_picks_are_those_of_scoring_everybody_anew(kind, seed, count, assumed):
    assumed = min(assumed, (count - 3) // 4)
    distances = distances_of(kind, np.random.default_rng(seed), count)
    for picks in (count - 2 * assumed, count):
        found = repeated_nearest(distances, assumed, picks)
        assert found.tolist() == one_after_the_other(distances, assumed, picks)


@pytest.mark.parametrize("kind", KINDS)
def test_picks_of_many_clients(kind):
    distances = distances_of(kind, np.random.default_rng(1), 300)
    assert repeated_nearest(distances, 60, 180).tolist() == one_after_the_other(distances, 60, 180)


@pytest.mark.parametrize("count", [*range(40), 127, 128, 129, 135, 136, 137, 255, 256, 257, 1000, 1023, 2047, 10_001])
def test_adding_up_rounds_as_numpy_does(count):
    values = np.sort(np.random.default_rng(count).lognormal(0, 3, count))
    assert added_up(values, 0, count) == values.sum()


@pytest.mark.parametrize("count", [3, 50, 144, 145, 300, 517])
def test_half_a_matrix_is_the_matrix(count):
    rows = np.random.default_rng(count).standard_normal((count, 6)).astype(np.float32)
    matrix = pairwise_squared_l2(rows)
    half = squared_l2_triangle(rows)
    assert len(half) == count
    assert sum(panel.nbytes for panel in half.panels) <= 8 * count * (count + 144) / 2
    np.testing.assert_array_equal(half.rows(0, count), matrix)
    np.testing.assert_array_equal(half.rows(count // 3, count // 2 + 1), matrix[count // 3 : count // 2 + 1])
    for height in (1, 7, 256, 1000):
        np.testing.assert_array_equal(np.concatenate([block for _, block in half.blocks(height)]), matrix)
    for neighbours in (0, 1, count // 2, count - 1):
        expected = all_at_once(matrix, neighbours)
        np.testing.assert_array_equal(nearest_sums(matrix, neighbours), expected)
        np.testing.assert_array_equal(nearest_sums(half, neighbours), expected)


def test_nearest_sums_leave_the_matrix_as_it_was():
    matrix = pairwise_squared_l2(np.eye(5))
    before = matrix.copy()
    nearest_sums(matrix, 2)
    np.testing.assert_array_equal(matrix, before)
