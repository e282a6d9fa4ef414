from __future__ import annotations

import pytest
from flwr.supercore.task_identity import TaskIdentity


def _as_a_task() -> None:
    TaskIdentity.run_id = 1
    TaskIdentity.node_id = 1
    TaskIdentity.task_id = 1


@pytest.fixture(autouse=True, scope="session")
def _task_identity():
    """Flower builds messages only inside a task; this is what a ServerApp's process sets."""
    _as_a_task()


@pytest.fixture(autouse=True)
def _task_identity_of_this_test():
    """The same for each test: a simulation that was run between two of them has set its own."""
    _as_a_task()
