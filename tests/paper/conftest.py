from __future__ import annotations

import pytest
from tests.paper.paper_results import grid_cells, paper_data, paper_results


@pytest.fixture(scope="session")
def cells():
    """All cells of the paper on two data sets, for three seeds."""
    return grid_cells(datasets=("mnist", "huffpost"), num_seeds=3)


@pytest.fixture(scope="session")
def results(cells):
    return paper_results(cells)


@pytest.fixture(scope="session")
def data(cells):
    return paper_data(cells)
