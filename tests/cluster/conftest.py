"""One Ray cluster of two cores on loopback for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        # Else other processes of a busy machine come first, and a test takes minutes.
        patch.setenv("RAY_worker_niceness", "0")
        about = {"num_cpus": 2, "include_dashboard": False, "object_store_memory": 200 << 20}
        nodes = Cluster(initialize_head=True, head_node_args=about)
        ray.init(address=nodes.address, log_to_driver=False, configure_logging=False)
        yield nodes
        ray.shutdown()
        nodes.shutdown()
