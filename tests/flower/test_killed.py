"""Servers killed with SIGKILL at any moment of a run, and started again: the same bits as without.

In a real deployment: test_deploy_killed.py.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tests.flower.both import STRATEGIES, federation, make, same
from tests.flower.deployed import wait_until
from tests.flower.killed import RULES

from fedra.server.state import load_state

ROUNDS = 40


@pytest.mark.parametrize(("api", "kind"), STRATEGIES.values(), ids=STRATEGIES)
def test_a_killed_server_goes_on_with_the_same_bits(tmp_path, api, kind):
    whole = make(api, kind, rule=RULES[kind])
    expected = api.run(whole, federation(8), ROUNDS)
    state, result = tmp_path / "state.npz", tmp_path / "result.npz"
    command = [sys.executable, "-m", "tests.flower.killed", api.name, kind, str(state), str(result), str(ROUNDS)]

    def rounds_done() -> int:
        return load_state(state, whole.server.writer).round if state.exists() else 0

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, cwd=Path(__file__).parents[2], stderr=subprocess.DEVNULL)

    for least, delay in ((3, 0.013), (12, 0.031)):
        process = start()
        try:
            wait_until(lambda least=least: rounds_done() >= least, 60, "no rounds")
            time.sleep(delay)
        finally:
            process.send_signal(signal.SIGKILL)
            assert process.wait() == -signal.SIGKILL
        assert least <= rounds_done() < ROUNDS
        assert not result.exists()
    assert start().wait(60) == 0
    with np.load(result) as found:
        assert same([found[place] for place in found], expected)
    saved = load_state(state, whole.server.writer)
    assert saved.round == ROUNDS
    memory = whole.server.defence.rule_state
    assert same(list(saved.rule.values()), list(memory.values()))
