"""A ServerApp of a real deployment killed in the middle of a run, started again: the same bits as without."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest
from tests.flower.deployed import alive, deployment, wait_until

from fedra.server.state import load_state

APP = Path(__file__).parent / "clipping_app"
NODES = 3
ROUNDS = 5
WRITER = "RobustStrategy with Adam(lr=0.001, beta1=0.9, beta2=0.999, eps=1e-08)"


@pytest.mark.slow_deployment
def test_a_server_killed_in_the_middle_goes_on_with_the_same_bits(tmp_path):
    whole, resumed, state, process = (tmp_path / name for name in ("whole.npz", "resumed.npz", "state.npz", "process"))

    def options(result: Path, **more) -> list[str]:
        settings = {
            "num-server-rounds": ROUNDS,
            "min-available-nodes": NODES,
            "result": f'"{result}"',
            "process": f'"{process}"',
            **more,
        }
        return ["--run-config", " ".join(f"{name}={value}" for name, value in settings.items())]

    with deployment(tmp_path, nodes=NODES) as running:
        running.start_superlink()
        for place in range(NODES):
            running.start_supernode(place)
        log = running.flwr("run", str(APP), "deployment", "--stream", *options(whole), timeout=300)
        assert whole.exists(), log
        process.unlink()
        running.flwr("run", str(APP), "deployment", *options(resumed, state=f'"{state}"'))
        wait_until(
            lambda: state.exists() and load_state(state, WRITER).round >= 2,
            120,
            f"no second round:\n{running.log('superlink')}",
        )
        killed = int(process.read_text())
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda: not alive(killed), 20, "the ServerApp lives on")
        done = load_state(state, WRITER)
        assert done.round < ROUNDS
        assert not resumed.exists()
        log = running.flwr(
            "run", str(APP), "deployment", "--stream", *options(resumed, state=f'"{state}"'), timeout=300
        )
        assert f"resuming after round {done.round}" in log
        assert resumed.exists(), log
    with np.load(whole) as expected, np.load(resumed) as found:
        assert list(expected) == list(found)
        for name in expected:
            assert expected[name].tobytes() == found[name].tobytes()
            assert np.isfinite(expected[name]).all()
    assert load_state(state, WRITER).rule["centre"].any()
