"""The Ray engine on a real cluster of two working nodes on loopback, one of them killed in the middle."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fedra.cli import app
from fedra.experiments import Advanced, Event, Failed, Finished, Grid, RayEngine, Started, read_results, run_grid
from fedra.experiments.ray_engine import packed_folder, unpack_folder
from fedra.simulation import simulate

ray = pytest.importorskip("ray")

GRID = {
    "rules": ["fedra", "median"],
    "attacks": [{"attack": "tests.experiments.own:slow", "params": {"seconds": 0.1}, "label": "slow"}],
    "seeds": [0, 1],
    "fixed": {"rounds": 40, "num_sampled": 20, "eval_every": 5, "checkpoint_every": 10},
}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    yield nodes
    ray.shutdown()
    nodes.shutdown()


@pytest.mark.slow
def test_a_node_that_dies_costs_only_its_running_cells(cluster: Any, tmp_path: Path) -> None:
    cluster.add_node(num_cpus=1)
    doomed = cluster.add_node(num_cpus=1)
    grid = Grid.from_dict(GRID)
    seen: list[Event] = []
    killed_at = None

    def watch(event: Event) -> None:
        nonlocal killed_at
        seen.append(event)
        under_way = {event.run for event in seen if isinstance(event, Advanced)}
        if killed_at is None and len(under_way) == 2:
            killed_at = len(seen)
            cluster.remove_node(doomed, allow_graceful=False)

    outcome = run_grid(grid, out=tmp_path, name="two", engine=RayEngine(address=cluster.address), watch=watch)
    assert killed_at is not None
    assert not any(isinstance(event, Finished) for event in seen[:killed_at])
    starts = [event.run for event in seen if isinstance(event, Started)]
    assert len(starts) == 5, "the killed node had one cell, and that one began again"
    assert outcome.failed == {}
    assert set(outcome.results["status"]) == {"done"}
    bits = dict(zip(outcome.results["run"], outcome.results["weights_sha256"], strict=True))
    for name, config in grid.runs.items():
        assert bits[name] == simulate(config).summary["weights_sha256"]


@pytest.mark.slow
def test_what_fails_on_a_node_is_recorded_and_its_checkpoint_comes_back(cluster: Any, tmp_path: Path) -> None:
    cluster.add_node(num_cpus=1)
    bad = {"attack": "tests.experiments.own:raising", "params": {"at_round": 30}, "label": "raising"}
    grid = Grid.from_dict({**GRID, "settings": ["fixed"], "attacks": ["none", bad], "seeds": [0], "rules": ["fedavg"]})
    outcome = run_grid(grid, out=tmp_path, name="bad", engine=RayEngine(address=cluster.address, workers=1))
    (failed,) = outcome.failed.values()
    assert isinstance(failed, Failed)
    assert failed.error == "ArithmeticError: went wrong in round 30"
    assert "own.py" in failed.trace
    assert (tmp_path / "runs" / failed.run / "checkpoint.safetensors").is_file()
    assert sorted(outcome.results["status"]) == ["done", "failed"]


@pytest.mark.slow
def test_the_command_runs_on_a_cluster(cluster: Any, tmp_path: Path) -> None:
    cluster.add_node(num_cpus=1)
    (tmp_path / "g.toml").write_text('rules = ["uniform"]\n[fixed]\nrounds = 3\n', encoding="utf-8")
    flags = ("--engine", "ray", "--ray-address", cluster.address, "--out", str(tmp_path / "x"), "--json")
    done = CliRunner().invoke(app, ["grid", str(tmp_path / "g.toml"), *flags])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["failed"] == {}
    assert list(read_results(tmp_path / "x")["status"]) == ["done"]


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("127.0.0.1:1", r"there is no Ray cluster at 127.0.0.1:1 .*ray start --head"),
        ("ray://127.0.0.1:1", r"there is no Ray cluster at ray://127.0.0.1:1"),
        ("head-node", r"Ray address 'head-node'; give host:port"),
    ],
)
def test_no_cluster_is_told(address: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        run_grid(Grid.from_dict({}), out=tmp_path, name="g", engine=RayEngine(address=address))


def test_a_folder_survives_packing(tmp_path: Path) -> None:
    (tmp_path / "from" / "parts").mkdir(parents=True)
    (tmp_path / "from" / "config.toml").write_bytes(b"a")
    (tmp_path / "from" / "parts" / "one").write_bytes(b"b" * 5000)
    (tmp_path / "from" / ".lock").write_bytes(b"")
    (tmp_path / "to").mkdir()
    (tmp_path / "to" / "old").write_bytes(b"c")
    unpack_folder(packed_folder(tmp_path / "from"), tmp_path / "to")
    found = {str(file.relative_to(tmp_path / "to")): file.read_bytes() for file in (tmp_path / "to").rglob("*.*")}
    assert found == {"config.toml": b"a"}
    assert (tmp_path / "to" / "parts" / "one").read_bytes() == b"b" * 5000
    assert sorted(path.name for path in tmp_path.iterdir()) == ["from", "to"]
    unpack_folder(packed_folder(tmp_path / "nowhere"), tmp_path / "empty")
    assert list((tmp_path / "empty").iterdir()) == []
