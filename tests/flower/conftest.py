from __future__ import annotations

import pytest
from flwr.supercore.task_identity import TaskIdentity


@pytest.fixture(autouse=True, scope="session")
def _task_identity():
    """Flower builds messages only inside a task; this is what a ServerApp's process sets."""
    TaskIdentity.run_id = 1
    TaskIdentity.node_id = 1
    TaskIdentity.task_id = 1
