"""Real processes on loopback: a SuperLink, six SuperNodes, one of them lying."""

from __future__ import annotations

import pytest
from tests.flower.deployed import deployment, finished

from fedra.audit import read_trail

NODES = 6


@pytest.mark.deployment
def test_a_liar_captures_fedavg_but_not_the_guard(tmp_path):
    settings = {"num-server-rounds": 3, "dataset": "digits", "min-available-nodes": NODES, "learning-rate": 0.2}
    with deployment(tmp_path, nodes=NODES) as running:
        running.start_superlink()
        for place in range(NODES):
            running.start_supernode(place, "malicious=true claimed-examples=1000000000" if place == 2 else "")
        results = {}
        for defence in ("fedavg", "guard"):
            path = tmp_path / f"{defence}.json"
            audit = str(tmp_path / "audit.jsonl") if defence == "guard" else ""
            log = running.run({**settings, "defence": defence, "result": str(path), "audit": audit}, timeout=400)
            assert finished(path), log
            results[defence] = finished(path)
    assert results["fedavg"]["accuracy"]["3"] < 0.2
    assert results["guard"]["accuracy"]["3"] > 0.7
    trail = read_trail(tmp_path / "audit.jsonl")
    assert [record["round"] for record in trail.rounds] == [1, 2, 3]
    liars = {record["client"] for record in trail.clients if record["claimed_quantity"] == 1e9}
    assert len(liars) == 1
    assert not any(record["kept"] for record in trail.clients if record["client"] in liars)
