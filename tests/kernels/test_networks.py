"""Sorting networks, by the 0-1 principle: what sorts all zeros and ones sorts everything."""

import itertools

import numpy as np
import pytest

from fedra.kernels import networks_compiled
from fedra.kernels.columns import aligned
from fedra.kernels.networks import MOST_ROWS, PATTERNS, comparisons, sorting_network


def run(steps, rows):
    rows = rows.copy()
    for kind, *wires in steps:
        for pair in PATTERNS[kind]:
            low, high = (wires[place] for place in pair)
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
        steps = sorting_network(count, ranks)
        wanted = sorted(ranks)
        np.testing.assert_array_equal(run(steps, inputs)[wanted], ordered[wanted])
        assert comparisons(steps) <= comparisons(sorting_network(count, range(count)))


@pytest.mark.parametrize("count", [100, 128, 200, 255, 256, 257, 300, 513])
def test_large_networks_sort(count):
    inputs = zeros_and_ones(count)
    np.testing.assert_array_equal(run(sorting_network(count, range(count)), inputs), np.sort(inputs, axis=0))


@pytest.mark.parametrize("count", [10, 50, 100])
def test_steps_keep_rows_in_registers(count):
    steps = sorting_network(count, range(count))
    stored = sum(len({place for pair in PATTERNS[kind] for place in pair}) for kind in steps[:, 0])
    assert stored < 0.65 * 2 * comparisons(steps)


@pytest.mark.parametrize("kind", range(len(PATTERNS)))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compiled_steps_are_their_patterns(kind, dtype):
    rng = np.random.default_rng(kind)
    tile = aligned((10, 64), dtype)
    tile[:] = rng.integers(-4, 5, tile.shape)
    steps = np.array([[kind, *rng.permutation(10)[:MOST_ROWS]]])
    expected = run(steps, tile)
    tags = aligned((10, 64))
    tags[:] = rng.permuted(np.tile(np.arange(10.0)[:, np.newaxis], (1, 64)), axis=0)
    if dtype == np.float64:
        keys = tile * 100 + tags
        values = tile.copy()
        tile_sorted = aligned((10, 64))
        tile_sorted[:] = values
        networks_compiled.sort_tagged_columns(tile_sorted, tags, steps)
        np.testing.assert_array_equal(tile_sorted * 100 + tags, run(steps, keys))
        np.testing.assert_array_equal(tile_sorted, expected)
    networks_compiled.sort_columns(tile, steps)
    np.testing.assert_array_equal(tile, expected)


def test_no_rank_needs_no_comparison():
    assert sorting_network(10, ()).shape == (0, 1 + MOST_ROWS)
    assert sorting_network(1, [0]).shape == (0, 1 + MOST_ROWS)
