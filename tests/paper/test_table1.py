"""Table 1: ours beside the paper's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fedra.data import DATASETS, load_dataset, lognormal_quantities
from fedra.paper import read_paper
from fedra.paper.table1 import dataset_statistics, statistics_lines, statistics_markdown, statistics_section

DASH = "\N{EN DASH}"


def test_our_line_of_table_1() -> None:
    ours = dataset_statistics("digits")
    labels = load_dataset("digits").train_labels
    quantities = lognormal_quantities(len(labels), seed=DATASETS["digits"].partition_seed)
    assert (ours.num_classes, ours.num_train, ours.num_test) == (10, 1438, 359)
    assert (ours.num_clients, ours.max_quantity) == (len(quantities), max(quantities))
    assert ours.mean_quantity == pytest.approx(len(labels) / len(quantities))
    assert ours.std_quantity == pytest.approx(np.std(quantities, ddof=1))
    assert {line.dataset for line in read_paper().statistics} <= set(DATASETS)


def test_it_has_our_clients_beside_the_papers(data: Any) -> None:
    lines = statistics_markdown(statistics_lines(data.outcomes)).splitlines()
    assert lines[2] == "| MNIST | 10 | 60,000 | 10,000 | 3,025 | 3,060 | 19.77 | 179.28 | 6,820 |"
    assert lines[3] == f"| HuffPost | {' | '.join([DASH] * 4)} | 3,060 | {' | '.join([DASH] * 3)} |"


def test_the_page_has_the_same_figures(data: Any) -> None:
    (table,) = statistics_section(statistics_lines(data.outcomes)).tables
    assert list(table.lines[0]) == ["MNIST", "3,060", "10", "60,000", "10,000", "3,025", "19.77", "179.28", "6,820"]
    assert list(table.lines[1])[:3] == ["HuffPost", "3,060", DASH]
