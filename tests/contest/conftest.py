import pytest
from tests.contest.contest_results import contest_data

from fedra.contest import Contest


@pytest.fixture(scope="session")
def data():
    """The whole contest and, on digits, the one with broken assumptions."""
    return contest_data(Contest(), Contest(broken=True))
