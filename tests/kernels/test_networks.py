"""Sorting networks, by the 0-1 principle: what sorts all zeros and ones sorts everything."""

import itertools

import numpy as np
import pytest

from fedra.kernels.networks import sorting_network


def run(pairs, rows):
    rows = rows.copy()
    for low, high in pairs:
        rows[low], rows[high] = np.minimum(rows[low], rows[high]), np.maximum(rows[low], rows[high])
    return rows


def zeros_and_ones(count):
    if count <= 12:
        return np.array(list(itertools.product([0, 1], repeat=count)), dtype=np.int8).T
    rng = np.random.default_rng(count)
    return (rng.random((count, 4000)) < rng.random(4000)).astype(np.int8)


@pytest.mark.parametrize("count", range(1, 65))
def test_the_whole_network_sorts(count):
    inputs = zeros_and_ones(count)
    np.testing.assert_array_equal(run(sorting_network(count, range(count)), inputs), np.sort(inputs, axis=0))


@pytest.mark.parametrize("count", range(1, 65))
def test_a_pruned_network_brings_the_wanted_ranks(count):
    inputs = zeros_and_ones(count)
    ordered = np.sort(inputs, axis=0)
    for ranks in ({(count - 1) // 2, count // 2}, {0}, {count - 1}, set(range(count // 4, count - count // 4))):
        pairs = sorting_network(count, ranks)
        wanted = sorted(ranks)
        np.testing.assert_array_equal(run(pairs, inputs)[wanted], ordered[wanted])
        assert len(pairs) <= len(sorting_network(count, range(count)))


def test_no_rank_needs_no_comparison():
    assert sorting_network(10, ()).shape == (0, 2)
    assert sorting_network(1, [0]).shape == (0, 2)
