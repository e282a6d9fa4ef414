"""The example in NVFlare's own simulator: a server and its clients as processes on loopback."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest

import fedra
from fedra.audit import read_trail, summarise

EXAMPLE = Path(__file__).parents[2] / "examples" / "nvflare-digits"
ROUNDS = 3
ATTEMPTS = 3
MOST_SECONDS = 180
# NVFlare 2.9.0 looks for a free port for each client at the same time.
PORT_TAKEN = "Communication error with client"

pytestmark = pytest.mark.deployment


def processes_of(folder: Path) -> list[psutil.Process]:
    """What runs with this folder in its command or environment."""
    found = []
    for process in psutil.process_iter():
        try:
            if str(folder) in " ".join([*process.cmdline(), *process.environ().values()]):
                found.append(process)
        except psutil.Error:
            continue
    return [process for process in found if process.pid != os.getpid()]


def accuracy_of(*arguments: str) -> float:
    """Return what job.py ends with, tried again where the simulator gave two of its clients the same port."""
    for _ in range(ATTEMPTS):
        # Not pytest's: its names are too long for the sockets that the simulator makes there.
        with tempfile.TemporaryDirectory(prefix="fedra-") as folder:
            text = output_of(Path(folder), *arguments)
        if PORT_TAKEN not in text:
            return float(re.findall(r"accuracy ([0-9.]+) after", text)[0])
    raise AssertionError(f"the simulator lost a client {ATTEMPTS} times")


def output_of(folder: Path, *arguments: str) -> str:
    """Run job.py to its end, or until a client is lost, which it would wait for; nothing of it is left running."""
    command = [sys.executable, str(EXAMPLE / "job.py"), "--rounds", str(ROUNDS), "--hostile", "1", *arguments]
    environment = {**os.environ, "TMPDIR": str(folder), "PYTHONPATH": str(Path(fedra.__file__).parents[1])}
    output = folder / "output.txt"
    begin = time.monotonic()
    with output.open("w") as file:
        process = subprocess.Popen(command, env=environment, stdout=file, stderr=subprocess.STDOUT, cwd=folder)
        try:
            while process.poll() is None and PORT_TAKEN not in output.read_text():
                assert time.monotonic() - begin < MOST_SECONDS, f"it does not end:\n{output.read_text()[-3000:]}"
                time.sleep(0.5)
            ended = process.poll() is not None
        finally:
            left = processes_of(folder)
            for each in left:
                each.kill()
            process.wait()
    text = output.read_text()
    if ended:
        assert process.returncode == 0, text[-5000:]
        assert left == [], "something was left running"
    return text


@pytest.mark.parametrize("clients", [3, 8])
def test_a_hostile_client_captures_plain_averages_and_not_ours(clients: int, tmp_path: Path) -> None:
    plain = accuracy_of("--clients", str(clients), "--defence", "none")
    trail = tmp_path / "audit.jsonl"
    ours = accuracy_of("--clients", str(clients), "--defence", "fedra", "--audit", str(trail))
    assert plain < 0.25
    assert ours > 0.85
    read = read_trail(trail)
    assert [line["round"] for line in read.rounds] == list(range(ROUNDS))
    assert all(not line["note"] for line in read.rounds)
    worst = summarise(read)[0]
    assert worst.client == "site-1"
    assert all(client["kept"] is (client["client"] != "site-1") for client in read.clients)
    assert {client["claimed_quantity"] for client in read.clients if client["client"] == "site-1"} == {1e9}
