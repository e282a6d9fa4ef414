"""Secure deployments, and what goes wrong in them: strangers, power cuts, restarts."""

from __future__ import annotations

import time

import pytest
from tests.flower.deployed import deployment, example, finished, wait_until

from fedra.audit import read_trail

NODES = 7

pytestmark = pytest.mark.slow_deployment


def settings(folder, **more):
    return {
        "num-server-rounds": 3,
        "dataset": "digits",
        "min-available-nodes": NODES,
        "learning-rate": 0.2,
        "result": str(folder / "result.json"),
        "audit": str(folder / "audit.jsonl"),
        **more,
    }


def start_secure(running, folder) -> None:
    running.start_superlink()
    for place in range(NODES):
        key = example().make_key(folder / f"node-{place}")
        running.register(key, f"node-{place}")
        running.start_supernode(place, "malicious=true" if place == 0 else "", key)


def test_encrypted_and_authenticated_and_strangers_are_refused(tmp_path):
    with deployment(tmp_path, nodes=NODES + 1, secure=True) as running:
        start_secure(running, tmp_path)
        running.start_supernode(NODES, key=example().make_key(tmp_path / "stranger"))
        log = running.run(settings(tmp_path), timeout=600)
        assert finished(tmp_path / "result.json"), log
        stranger = running.supernodes[NODES]
        wait_until(
            lambda: stranger.poll() is not None or "denied" in running.log(f"supernode-{NODES}").lower(),
            60,
            f"the stranger was not refused:\n{running.log(f'supernode-{NODES}')}",
        )
    assert finished(tmp_path / "result.json")["accuracy"]["3"] > 0.6
    trail = read_trail(tmp_path / "audit.jsonl")
    assert len({record["client"] for record in trail.clients}) == NODES


def test_a_supernode_killed_in_the_middle_of_a_round(tmp_path):
    """The run goes on with the rest; the dead node's reply is an error or never comes."""
    options = settings(tmp_path, **{"num-server-rounds": 4, "min-available-nodes": NODES - 1, "local-epochs": 60})
    with deployment(tmp_path, nodes=NODES) as running:
        running.start_superlink()
        for place in range(NODES):
            running.start_supernode(place)
        wait_until(lambda: running.log("superlink").count("Activated node_id") == NODES, 100, "not all nodes connected")
        running.submit(options)
        audit = tmp_path / "audit.jsonl"
        wait_until(audit.exists, 200, f"no first round:\n{running.log('superlink')}")
        time.sleep(2)
        running.kill_supernode(5)
        wait_until(lambda: finished(tmp_path / "result.json"), 400, f"no end:\n{running.log('superlink')}")
    result = finished(tmp_path / "result.json")
    assert sorted(result["accuracy"]) == ["0", "1", "2", "3", "4"]
    assert result["accuracy"]["4"] > 0.8
    assert all(metrics["fedra-skipped"] == 0 for metrics in result["train"].values())
    clients = read_trail(tmp_path / "audit.jsonl").clients
    usable = [sum(c["usable"] for c in clients if c["round"] == number) for number in range(1, 5)]
    assert (usable[0], usable[-1]) == (NODES, NODES - 1)


def test_superlink_restarted_and_serverapp_resumed(tmp_path):
    """The state file outlives the SuperLink; SuperNodes reconnect; a new run goes on after the last round."""
    options = settings(
        tmp_path, **{"defence": "robust", "server-optimizer": "sgd", "state": str(tmp_path / "state.npz")}
    )
    with deployment(tmp_path, nodes=NODES, database=tmp_path / "link.db") as running:
        running.start_superlink()
        for place in range(NODES):
            running.start_supernode(place)
        running.submit(options | {"num-server-rounds": 50})
        wait_until(
            lambda: (tmp_path / "audit.jsonl").exists() and len(read_trail(tmp_path / "audit.jsonl").rounds) >= 2,
            300,
            f"no second round:\n{running.log('superlink')}",
        )
        running.stop_superlink()
        before = len(read_trail(tmp_path / "audit.jsonl").rounds)
        assert not finished(tmp_path / "result.json")
        running.start_superlink()
        log = running.run(options | {"num-server-rounds": before + 2}, timeout=600)
        assert finished(tmp_path / "result.json"), log
    rounds = [record["round"] for record in read_trail(tmp_path / "audit.jsonl").rounds]
    assert rounds == list(range(1, before + 3))
    assert finished(tmp_path / "result.json")["accuracy"][str(before + 2)] > 0.7
