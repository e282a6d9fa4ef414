"""Threads: the same bits for any number of them, and no interpreter lock held while a kernel works."""

import itertools
import sys
import threading

import numpy as np
import pytest

from fedra import kernels
from fedra.kernels import columns_compiled, distances_compiled, sums_compiled, weighted_columns_compiled
from fedra.kernels.threads import column_blocks, in_order, over_blocks, thread_count

COUNT = 5
WEIGHTS = np.array([0.1, 0.2, 0.3, 0.15, 0.25])
KERNELS = {
    "pairwise_l1": lambda rows, threads: kernels.pairwise_l1(rows, threads),
    "pairwise_squared_l2": lambda rows, threads: kernels.pairwise_squared_l2(rows, threads),
    "norms": lambda rows, threads: kernels.norms(rows, threads),
    "distances_to_mean": lambda rows, threads: kernels.distances_to_mean(rows, WEIGHTS, threads),
    "weighted_sum": lambda rows, threads: kernels.weighted_sum(rows, WEIGHTS, threads),
    "largest_magnitudes": lambda rows, threads: kernels.largest_magnitudes(rows, threads),
    "column_median": lambda rows, threads: kernels.column_median(rows, threads),
    "column_trimmed_mean": lambda rows, threads: kernels.column_trimmed_mean(rows, 1, threads),
    "column_mean_around_median": lambda rows, threads: kernels.column_mean_around_median(rows, 3, threads),
    "column_weighted_trimmed_mean": lambda rows, threads: kernels.column_weighted_trimmed_mean(
        rows, WEIGHTS, 0.1, threads
    ),
}
every_kernel = pytest.mark.parametrize("kernel", KERNELS)


@every_kernel
@pytest.mark.parametrize("dimension", [16_385, 100_001])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_number_of_threads_does_not_change_a_bit(kernel, dimension, dtype):
    rows = np.random.default_rng(dimension).standard_normal((COUNT, dimension)).astype(dtype)
    one = KERNELS[kernel](rows, 1)
    for threads in (2, 3, 8, None):
        np.testing.assert_array_equal(KERNELS[kernel](rows, threads), one)


def lets_others_run(work, attempts=20_000):
    """Whether another thread gets to run while `work` is repeated, with forced switches between threads put off.

    Many attempts, because on a busy machine the other thread may be slow to take the lock when it is free.
    """
    ready, ran = threading.Event(), []

    def other():
        ready.wait()
        ran.append(True)

    thread = threading.Thread(target=other)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        thread.start()
        ready.set()
        for _ in range(attempts):
            work()
            if ran:
                return True
        return False
    finally:
        sys.setswitchinterval(interval)
        thread.join()


COMPILED = {
    "pairwise_l1": (distances_compiled, "pairwise_block"),
    "pairwise_squared_l2": (distances_compiled, "pairwise_block"),
    "norms": (distances_compiled, "squared_norms_block"),
    "distances_to_mean": (distances_compiled, "squared_to_mean_block"),
    "weighted_sum": (sums_compiled, "weighted_sum_block"),
    "largest_magnitudes": (sums_compiled, "largest_bits"),
    "column_median": (columns_compiled, "trimmed_mean_block"),
    "column_trimmed_mean": (columns_compiled, "trimmed_mean_block"),
    "column_mean_around_median": (columns_compiled, "around_median_block"),
    "column_weighted_trimmed_mean": (weighted_columns_compiled, "weighted_trimmed_mean_block"),
}


def watch(monkeypatch, module, name):
    """Replace a compiled function by one that also notes whether others could run during it alone."""
    compiled, noted = getattr(module, name), []
    monkeypatch.setattr(module, name, lambda *arguments: noted.append(lets_others_run(lambda: compiled(*arguments))))
    return noted


@every_kernel
def test_kernels_work_without_the_interpreter_lock(kernel, monkeypatch):
    rows = np.random.default_rng(0).standard_normal((COUNT, 40_000), dtype=np.float32)
    KERNELS[kernel](rows, 1)
    noted = watch(monkeypatch, *COMPILED[kernel])
    KERNELS[kernel](rows, 1)
    assert noted
    assert all(noted)


def test_pairs_taken_again_are_taken_without_the_lock(monkeypatch):
    rows = np.random.default_rng(0).standard_normal((40, 8000), dtype=np.float32)
    rows *= np.float32(1e37)  # float32 sums over a tile overflow
    kernels.pairwise_l1(rows, 1)
    noted = watch(monkeypatch, distances_compiled, "pairs_block")
    kernels.pairwise_l1(rows, 1)
    assert noted == [True]


def test_python_code_keeps_the_lock_so_that_the_test_above_means_something():
    assert not lets_others_run(lambda: sum(range(20_000)), attempts=300)


@pytest.mark.parametrize("dimension", [0, 1, 1024, 16_384, 16_385, 10**6, 10**8])
@pytest.mark.parametrize("multiple", [64, 832, 1024, 2048])
def test_blocks_cover_every_column_once(dimension, multiple):
    blocks = column_blocks(dimension, multiple)
    assert sum(stop - start for start, stop in blocks) == dimension
    assert all(start < stop for start, stop in blocks)
    assert all(before[1] == after[0] for before, after in itertools.pairwise(blocks))
    assert all(start % multiple == 0 for start, _ in blocks)
    assert len(blocks) <= 65


def test_results_come_in_the_order_of_the_blocks():
    blocks = [(i, i + 1) for i in range(50)]
    for threads in (1, 4):
        assert list(over_blocks(lambda start, stop: start, blocks, threads)) == list(range(50))


def test_few_results_wait_however_many_there_will_be():
    done = []
    results = in_order(lambda item: done.append(item) or item, range(100), 3)
    for expected in range(100):
        assert next(results) == expected
        assert len(done) <= expected + 1 + 2 * 3


def test_what_goes_wrong_in_a_thread_is_raised():
    def work(start, stop):
        raise KeyError(start)

    with pytest.raises(KeyError):
        list(over_blocks(work, [(0, 1), (1, 2)], 2))


def test_counting_threads():
    assert thread_count(3) == 3
    assert thread_count(None) >= 1
    for wrong in (0, -2, 1.0, "1", True):
        with pytest.raises(ValueError, match="give a whole number of at least 1"):
            thread_count(wrong)
