"""Real processes, killed and stopped at moments of chance, end with the bits of one that was left alone."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from tests.simulation.watching import Calling

from fedra.simulation import SimulationConfig, SimulationResult, resume, simulate

ROUNDS = 200
FLAGS = ("--attack", "lie", "--alpha-q", "10", "--checkpoint-every", "4", "--eval-every", "30")
PATIENCE = 120


@pytest.fixture(scope="module")
def uninterrupted() -> SimulationResult:
    return simulate(SimulationConfig(attack="lie", alpha_q=10, rounds=ROUNDS, checkpoint_every=4, eval_every=30))


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "fedra", "run", *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def finished(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


def wait_for(process: subprocess.Popen[str], ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not ready():
        assert process.poll() is None, f"ended too early: {process.communicate()}"
        assert time.monotonic() < deadline
        time.sleep(0.002)


def last_part(path: Path) -> int:
    """Return the round of the last records on disk."""
    return max((int(part.stem.rpartition("-")[2]) for part in path.glob("parts/rounds-*.parquet")), default=0)


def assert_same(path: Path, expected: SimulationResult) -> None:
    result = json.loads((path / "result.json").read_text(encoding="utf-8"))
    assert result["weights_sha256"] == expected.summary["weights_sha256"]
    assert result["final_accuracy"] == expected.final_accuracy
    pd.testing.assert_frame_equal(pd.read_parquet(path / "rounds.parquet"), expected.rounds, check_exact=True)
    pd.testing.assert_frame_equal(pd.read_parquet(path / "clients.parquet"), expected.clients, check_exact=True)


def test_killed_three_times_and_resumed(tmp_path: Path, uninterrupted: SimulationResult) -> None:
    path = tmp_path / "run"
    chance = random.Random()
    moments = []
    process = start(*FLAGS, "--rounds", str(ROUNDS), "--out", str(path), "--quiet")
    for earliest in (0, 50, 100):
        moments.append((earliest, chance.uniform(0, 0.05)))
        wait_for(process, lambda earliest=earliest: last_part(path) > earliest)  # type: ignore[misc]
        time.sleep(moments[-1][1])
        process.send_signal(signal.SIGKILL)
        assert finished(process)[0] == -signal.SIGKILL, f"it ended before it was killed: {moments}"
        assert not (path / "result.json").exists()
        process = start("--resume", str(path), "--quiet")
    code, out, err = finished(process)
    assert (code, out, err) == (0, "", ""), moments
    assert_same(path, uninterrupted)


def test_stopped_it_says_how_to_go_on(tmp_path: Path, uninterrupted: SimulationResult) -> None:
    path = tmp_path / ("a folder of a rather long name, which no line break may cut " * 2).strip()
    process = start(*FLAGS, "--rounds", str(ROUNDS), "--out", str(path))
    wait_for(process, lambda: last_part(path) > 8)
    process.send_signal(signal.SIGINT)
    code, out, err = finished(process)
    assert code == 130
    assert out == ""
    assert f"stopped; all finished rounds are kept. Resume with: fedra run --resume {path}\n" in err
    assert "Traceback" not in err
    first = []
    resume(path, observers=[Calling(lambda record: first.append(record.round))])
    assert 8 < first[0] < ROUNDS
    assert_same(path, uninterrupted)


def test_a_second_process_on_the_same_folder_is_told_and_the_first_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "run"
    first = start(*FLAGS, "--rounds", "1000000", "--out", str(path), "--quiet")
    try:
        wait_for(first, lambda: last_part(path) > 0)
        code, _, err = finished(start("--resume", str(path)))
        assert code == 2
        assert f"error: {path} is in use by another process" in err
        assert first.poll() is None
        first.terminate()
        code, _, err = finished(first)
        assert code == 130
        assert "fedra run --resume" in err
    finally:
        first.kill()
        first.communicate()
