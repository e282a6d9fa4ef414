from __future__ import annotations

import pytest
from tests.report.paper_results import grid_cells, paper_results


@pytest.fixture(scope="session")
def cells():
    """All cells of the paper on two data sets, for three seeds."""
    return grid_cells(datasets=("mnist", "huffpost"), num_seeds=3)


@pytest.fixture(scope="session")
def results(cells):
    return paper_results(cells)
