"""The statistics table."""

from __future__ import annotations

import numpy as np
import pytest

from fedra.data import Partition, partition_statistics, statistics_table

PART = Partition(order=np.arange(4000), offsets=np.array([0, 1, 4, 4000]))


def test_statistics_are_those_of_the_quantities() -> None:
    statistics = partition_statistics(PART)
    assert (statistics.clients, statistics.samples, statistics.max) == (3, 4000, 3996)
    assert statistics.mean == pytest.approx(4000 / 3)
    assert statistics.std == pytest.approx(np.std([1, 3, 3996], ddof=1))


def test_a_lone_client_has_no_spread() -> None:
    assert partition_statistics(Partition(order=np.arange(2), offsets=np.array([0, 2]))).std == 0.0


def test_the_table_has_a_row_for_each_partition() -> None:
    lines = statistics_table({"first": partition_statistics(PART), "second": partition_statistics(PART)}).splitlines()
    assert len(lines) == 4
    assert lines[2] == "| first | 4,000 | 3 | 1333.33 | 2305.94 | 3,996 |"
