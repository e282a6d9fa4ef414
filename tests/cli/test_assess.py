"""`fedra assess`: what it takes, what it prints, and what it refuses."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tests.assess.samples import SILOS
from tests.audit.records import round_record
from typer.testing import CliRunner, Result

from fedra.assess import Federation, assess, assessment_text, assessment_values
from fedra.audit import AuditLog
from fedra.cli import app

FEW = ("--rule", "median", "--budget", "3")
NUMBERS = ",".join(map(str, SILOS))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["assess", *arguments])


def test_text_json_and_page_say_what_the_library_says(tmp_path: Path) -> None:
    found = assess(Federation.of(SILOS, num_malicious=2, rounds=7), ["median"], budget=3, seed=5)
    flags = ("--quantities", NUMBERS, "--num-malicious", "2", "--rounds", "7", "--seed", "5", *FEW)
    done = run(*flags)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == assessment_text(found, 120) + "\n"
    done = run(*flags, "--json")
    assert json.loads(done.stdout) == assessment_values(found)
    page = tmp_path / "page.html"
    done = run(*flags, "--html", str(page))
    assert done.stdout.endswith(f"wrote {page}\n")
    assert "<h1>Is this federation exposed?</h1>" in page.read_text(encoding="utf-8")
    done = run(*flags, "--html", str(page), "--quiet")
    assert (done.exit_code, done.stdout) == (0, "")


def test_sizes_alone_and_a_law() -> None:
    done = run("--num-clients", "100000", "--num-sampled", "12", "--malicious-ratio", "0.2", "--json", *FEW)
    found = json.loads(done.stdout)
    assert found["federation"]["num_malicious"] == 20_000
    assert found["federation"]["quantities"]["largest"] == 100
    done = run("--num-clients", "500", "--quantities", "zipf s=1.2", "--num-sampled", "12", "--json", *FEW)
    found = json.loads(done.stdout)
    assert found["federation"]["quantities"]["known"].startswith("quantities are drawn from a law, zipf s=1.2")


def test_an_audit_trail(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "a.jsonl")
    for number in (1, 2):
        log.round(round_record(number, clients=9))
    found = json.loads(run(str(tmp_path / "a.jsonl"), "--json", *FEW).stdout)
    assert (found["federation"]["num_clients"], found["federation"]["num_sampled"]) == (9, 9)
    found = json.loads(run(str(tmp_path / "a.jsonl"), "--num-clients", "30", "--json", *FEW).stdout)
    assert (found["federation"]["num_clients"], found["federation"]["num_sampled"]) == (30, 9)


def test_real_updates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for place in range(6):
        np.save(f"c{place}.npy", (0.2 + rng.normal(size=20)).astype(np.float32))
    Path("claims.csv").write_text("client,quantity\n" + "".join(f"c{place},{place + 5}\n" for place in range(6)))
    found = json.loads(run("--updates", "c*.npy", "--quantities", "claims.csv", "--json", *FEW).stdout)
    assert found["settings"]["looked_at"] == 6
    assert found["federation"]["quantities"]["largest"] == 10
    assert found["rules"][1]["cost"]["error"] is None
    found = json.loads(run("--updates", "c*.npy", "--json", *FEW).stdout)
    assert found["federation"]["num_clients"] == 6


def test_rules_with_parameters_and_labels() -> None:
    flags = ("--num-clients", "9", "--budget", "2", "--json")
    done = run(*flags, "--rule", "median before=nnm", "--rule", "trimmed-mean num_malicious=2 label=Trim")
    assert [each["label"] for each in json.loads(done.stdout)["rules"]] == ["fedavg", "median before=nnm", "Trim"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "nothing is known of the federation"),
        (("--num-clients", "10", "--rule", "fedar"), "did you mean 'fedra'?"),
        (("--num-clients", "10", "--rule", "median colour=red"), "has no parameter 'colour'"),
        (("--num-clients", "10", "--rule", "median", "--rule", "median"), "is there twice"),
        (("--num-clients", "10", "--malicious-ratio", "0.5"), "not including, 0.5"),
        (("--num-clients", "10", "--num-malicious", "5"), "less than half"),
        (("--num-clients", "10", "--num-sampled", "11"), "at most 10"),
        (("--num-clients", "1"), "whole number from 3"),
        (("--num-clients", "10", "--quantities", "lognorml"), "did you mean 'lognormal'"),
        (("--quantities", "equal"), "needs the number of clients"),
        (("--quantities", "none.txt"), "there is no file"),
        (("--quantities", "5,6,x"), "x"),
        (("--quantities", "5"), "1 client"),
        (("nowhere.jsonl",), "no audit trail"),
        (("nowhere.jsonl", "--quantities", "5,6,7"), "give one of them"),
        (("--num-clients", "10", "--base", "m.npy"), "is for --updates"),
        (("--num-clients", "10", "--updates", "no*.npy"), "no file has such a name"),
        (("--num-clients", "10", "--html", "no/where.html"), "there is no folder"),
        (("--num-clients", "10", "--budget", "0"), "budget=0"),
        (("--num-clients", "10", "--seed", "-1"), "seed=-1"),
        (("--num-clients", "10", "--signal", "nan"), "signal=nan"),
        (("--num-clients", "10", "--rounds", "0"), "rounds=0"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(
    arguments: tuple[str, ...], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert words in done.stderr
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.output


def test_help_lists_it() -> None:
    done = CliRunner().invoke(app, ["--help"])
    assert " assess " in done.stdout


def test_progress_on_a_terminal_and_ctrl_c() -> None:
    """A bar while it searches; an interrupt ends it at once, without a traceback."""
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "fedra", "assess", "--num-clients", "50", "--budget", "100000"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=follower, env={**os.environ, "COLUMNS": "60"})
    os.close(follower)
    seen = b""
    try:
        # Everything is waited for with a limit: a command that does not stop fails here and stops nobody else.
        while b"asking" not in seen and select.select([leader], [], [], 120)[0]:
            seen += os.read(leader, 4096)
        process.send_signal(signal.SIGINT)
        deadline = time.monotonic() + 120
        # A terminal whose other end is closed is an error on Linux, and an end of file elsewhere.
        with contextlib.suppress(OSError):
            while time.monotonic() < deadline and select.select([leader], [], [], 1)[0]:
                more = os.read(leader, 4096)
                if not more:
                    break
                seen += more
        assert process.wait(timeout=120) == 130
    finally:
        process.kill()
        process.wait()
        os.close(leader)
    assert b"asking" in seen
    assert b"Traceback" not in seen
