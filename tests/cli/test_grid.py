"""`fedra grid`, called and as a real process that is stopped, killed and called again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from fedra.cli import app
from fedra.simulation import SimulationConfig, simulate

PATIENCE = 120
needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
SMALL = """
rules = ["fedavg", "median"]
attacks = ["lie"]
alpha_q = [0, 10]
[fixed]
rounds = 4
num_sampled = 20
"""
LONG = """
seeds = [0, 1, 2]
rules = ["fedavg"]
attacks = [{attack = "optimize", label = "x"}]
[fixed]
num_sampled = 20
checkpoint_every = 10
eval_every = 100
rounds = 200
"""


@pytest.fixture(autouse=True)
def _working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def call(text: str, *arguments: str) -> Result:
    Path("small.toml").write_text(text, encoding="utf-8")
    return CliRunner().invoke(app, ["grid", "small.toml", *arguments])


def test_a_grid_runs_once() -> None:
    done = call(SMALL, "--workers", "1")
    assert done.exit_code == 0, done.output
    assert "4 cells, 3 distinct runs, 0 done already, 3 to run" in done.stderr
    assert done.stderr.count("\ndone digits-iid-dynamic-") == 3
    assert "3/3 runs done, time left: 0 s" in done.stderr
    assert "3 of 3 runs done" in done.stdout
    assert len(list(Path("runs/small/runs").iterdir())) == 3
    assert len(pd.read_parquet("runs/small/results.parquet")) == 4

    again = call(SMALL, "--json")
    told = json.loads(again.stdout)
    assert (again.exit_code, again.stderr) == (0, "")
    assert {key: told[key] for key in ("cells", "distinct", "missing", "reused", "failed")} == {
        "cells": 4,
        "distinct": 3,
        "missing": 0,
        "reused": 3,
        "failed": {},
    }


def test_it_ends_with_its_table_and_the_command_of_the_report() -> None:
    other = call(SMALL.replace("lie", "optimize"), "--workers", "1", "--out", "my runs", "-q")
    assert (other.exit_code, other.stdout) == (0, "")
    Path("small.toml").rename("other.toml")
    Path("my runs/grids/small.json").rename("my runs/grids/other.json")
    done = call(SMALL, "--workers", "1", "--out", "my runs")
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert lines[2:4] == ["small: Digits, IID, dynamic ratio", "attack rule alpha_q 0 alpha_q 10"]
    assert [line.split()[:2] for line in lines[4:6]] == [["LIE", "FedAvg"], ["LIE", "Median"]]
    assert lines[6].startswith("4 rounds, learning rate ")
    assert lines[-1] == "report: fedra report 'my runs'"
    entries = json.loads(call(SMALL, "--out", "my runs", "--json").stdout)["entries"]
    frame = pd.read_parquet("my runs/results.parquet").set_index(["grid", "rule", "alpha_q"])["final_accuracy"]
    assert {(line["row"], line["alpha_q"]) for line in entries} == {
        (rule, alpha_q) for rule in ("FedAvg", "Median") for alpha_q in (0.0, 10.0)
    }
    for line in entries:
        assert line["mean"] == frame["small", line["rule"], line["alpha_q"]]


def test_data_are_looked_for_before_the_first_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FEDRA_DATA", raising=False)
    text = 'datasets = ["digits", "mnist"]\n' + SMALL.lstrip()
    told = call(text, "--data-dir", str(tmp_path / "none"), "--workers", "1")
    assert told.exit_code == 2
    assert f"mnist is missing: get it with: fedra data get mnist --data-dir {tmp_path / 'none'}" in told.stderr
    assert not Path("runs").exists()
    dry = call(text, "--data-dir", str(tmp_path / "none"), "--dry-run")
    assert dry.exit_code == 0
    assert "mnist is missing" in dry.stderr
    (missing,) = json.loads(call(text, "--dry-run", "--json").stdout)["missing_data"]
    assert missing.startswith("mnist is missing")


def test_where_data_lie_makes_no_other_runs() -> None:
    names = [each["run"] for each in json.loads(call(SMALL, "--dry-run", "--json").stdout)["runs"]]
    moved = json.loads(call(SMALL, "--dry-run", "--json", "--data-dir", "elsewhere").stdout)["runs"]
    assert [each["run"] for each in moved] == names


def test_a_dry_run_tells_and_writes_nothing() -> None:
    done = call(SMALL, "--dry-run")
    assert done.exit_code == 0
    assert done.stdout.count("to run") == 3
    plan = json.loads(call(SMALL, "--dry-run", "--json").stdout)
    assert (plan["cells"], plan["distinct"], plan["missing"]) == (4, 3, 3)
    assert [run["done"] for run in plan["runs"]] == [False] * 3
    assert [path.name for path in Path().iterdir()] == ["small.toml"]


def test_a_cell_that_fails_makes_the_exit_code() -> None:
    text = SMALL.replace('"lie"', '"lie", {attack = "tests.experiments.own:raising", label = "bad"}')
    done = call(text, "--trust", "--workers", "1", "--out", "x")
    assert done.exit_code == 1, done.output
    assert done.stderr.count(": ArithmeticError: went wrong in round") == 6
    assert "3 of 6 runs done" in done.stdout
    assert sorted(pd.read_csv("x/results.csv")["status"]) == ["done"] * 4 + ["failed"] * 4


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ('rules = ["fedar"]', (), "did you mean 'fedra'?"),
        ("rules = ", (), "small.toml is not valid TOML"),
        ("rules = 3", (), "rules=3; give a list of at least one entry"),
        ("fixed = 3", (), "[fixed]=3; give a table"),
        ("alpha_q = [true]", (), "an entry of alpha_q=True; give finite numbers"),
        ('rules = [{rule = "fedra", label = 1}]', (), "label of an entry of rules=1; give a text"),
        ('attacks = [{attack = "lie", params = {z = "big"}}]', (), "z='big'; give a number, or 'max'"),
        (SMALL, ("--ray-address", "x:1"), "--ray-address x:1 is for --engine ray"),
    ],
)
def test_mistakes_are_one_line(text: str, arguments: tuple[str, ...], message: str) -> None:
    done = call(text, *arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not Path("runs").exists()


def test_without_ray_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    done = call(SMALL, "--engine", "ray", "--quiet")
    assert done.exit_code == 2
    assert "pip install 'fedra[ray]'" in done.stderr


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "fedra", "grid", "long.toml", "--out", "x", "--workers", "2", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def wait_for(process: subprocess.Popen[str], ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not ready():
        assert process.poll() is None, f"ended too early: {process.communicate()}"
        assert time.monotonic() < deadline
        time.sleep(0.005)


def finished() -> dict[str, int]:
    return {path.parent.name: path.stat().st_mtime_ns for path in Path("x").glob("runs/*/result.json")}


def checkpoints() -> set[str]:
    return {path.parent.name for path in Path("x").glob("runs/*/checkpoint.safetensors")} - set(finished())


def alive_in_session(session: int) -> list[int]:
    """Return the processes of a session that still run."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, _, _, member = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(member) == session and state != "Z":
                found.append(int(entry.name))
    return found


def assert_nobody_left(process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + PATIENCE
    while alive_in_session(process.pid):
        assert time.monotonic() < deadline, "workers outlive their grid"
        time.sleep(0.01)


@needs_proc
def test_killed_and_called_again_it_ends_as_if_left_alone() -> None:
    Path("long.toml").write_text(LONG, encoding="utf-8")
    process = start()
    wait_for(process, lambda: len(finished()) > 0 and len(checkpoints()) > 0)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=PATIENCE)
    assert_nobody_left(process)
    kept = finished()
    assert 0 < len(kept) < 3, "it was killed in the middle"

    process = start("--json")
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert json.loads(out)["reused"] == len(kept)
    assert {name: finished()[name] for name in kept} == kept
    for _, line in pd.read_parquet("x/results.parquet").iterrows():
        alone = simulate(SimulationConfig.from_dict(json.loads(line["config"])))
        assert line["weights_sha256"] == alone.summary["weights_sha256"]


@needs_proc
def test_a_second_grid_is_told_and_ctrl_c_stops_the_first_cleanly() -> None:
    Path("long.toml").write_text(LONG.replace("rounds = 200", "rounds = 1000000"), encoding="utf-8")
    process = start()
    wait_for(process, lambda: len(checkpoints()) == 2)
    second = CliRunner().invoke(app, ["grid", "long.toml", "--out", "x"])
    assert second.exit_code == 2
    assert "x is in use by another fedra grid" in second.stderr
    assert process.poll() is None
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "stopped; everything done so far is kept in x. Resume with the same command" in err
    assert "Traceback" not in err
    assert_nobody_left(process)
    results = pd.read_parquet("x/results.parquet")
    assert sorted(results["status"]) == ["missing", "unfinished", "unfinished"]
    assert not list(Path("x").rglob("error.json"))
