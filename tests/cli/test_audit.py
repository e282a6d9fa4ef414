"""`fedra audit`: a trail's summary on the terminal, and its page."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fedra.audit import AuditLog
from fedra.cli import app
from fedra.server import RoundRecord


@pytest.fixture
def trail(tmp_path: Path) -> Path:
    path = tmp_path / "a.jsonl"
    log = AuditLog(path)
    for number in (1, 2):
        clients = [
            {
                "client": node,
                "claimed_quantity": 10.0,
                "implied_quantity": 9.5,
                "score": float(node),
                "cut": 2.5,
                "kept": node < 3,
                "weight": 0.5 if node < 3 else 0.0,
                "reason": "" if node < 3 else "far from the others",
                "usable": True,
            }
            for node in (1, 2, 3)
        ]
        log.round(
            RoundRecord(
                run="r", round=number, phase="train", time=1.0, rule="krum", num_malicious=1, note="", clients=clients
            )
        )
    return path


def test_who_was_left_out_how_often_and_why(trail: Path) -> None:
    done = CliRunner().invoke(app, ["audit", str(trail)])
    assert (done.exit_code, done.stderr) == (0, ""), done.output
    assert "far from the others (last of 2)" in done.stdout
    assert "2 training rounds of 1 run" in done.stdout
    assert sorted(path.name for path in trail.parent.iterdir()) == ["a.jsonl"]


def test_the_page_is_written_where_it_is_asked_for(trail: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = CliRunner().invoke(app, ["audit", str(trail), "--html", str(page)])
    assert done.exit_code == 0, done.output
    assert done.stdout.endswith(f"wrote {page}\n")
    assert "far from the others (last of 2)" in page.read_text(encoding="utf-8")


def test_as_json(trail: Path) -> None:
    done = CliRunner().invoke(app, ["audit", str(trail), "--json"])
    found = json.loads(done.stdout)
    assert (found["training_rounds"], found["skipped"], found["gaps"]) == (2, [], [])
    assert found["clients"][0] == {
        "client": "3",
        "replies": 2,
        "dropped": 2,
        "unusable": 0,
        "share": 1.0,
        "median_claim": 10.0,
        "median_implied": 9.5,
        "reasons": [{"last": "far from the others", "times": 2}],
    }


@pytest.mark.parametrize("flags", [[], ["--json"], ["--follow"], ["--serve"], ["--html", "page.html"]])
@pytest.mark.parametrize("what", ["a folder", "a text"])
def test_what_is_no_trail_is_an_error_and_leaves_nothing(tmp_path: Path, flags: list[str], what: str) -> None:
    path = tmp_path / "it"
    path.mkdir() if what == "a folder" else path.write_text("hello\n")
    done = CliRunner().invoke(app, ["audit", str(path), *flags])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "not an audit trail" in done.stderr
    assert "give the file that" in done.stderr
    assert not Path("page.html").exists()


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--follow", "--serve"], "--follow and --serve do not go together"),
        (["--follow", "--json"], "--follow and --json do not go together"),
        (["--serve", "--html", "p.html"], "--serve and --html do not go together"),
        (["--port", "8000"], "--port 8000 is for --serve"),
    ],
)
def test_flags_that_do_not_go_together(trail: Path, flags: list[str], told: str) -> None:
    done = CliRunner().invoke(app, ["audit", str(trail), *flags])
    assert done.exit_code == 2
    assert told in done.stderr


def test_following_ends_by_ctrl_c(trail: Path) -> None:
    command = [sys.executable, "-m", "fedra", "audit", str(trail), "--follow"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        lines = [running.stdout.readline() for _ in range(4)]
        running.send_signal(signal.SIGINT)
        assert running.wait(30) == 0
    assert "round 1, kept 2, left out 1, assumed malicious 1" in lines[0]
    assert lines[1] == "    3: far from the others\n"
    assert "round 2, " in lines[2]


def test_serving_ends_by_ctrl_c(trail: Path) -> None:
    command = [sys.executable, "-m", "fedra", "audit", str(trail), "--serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        line = running.stderr.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+/", line)
        assert address, line
        with urllib.request.urlopen(address[0], timeout=30) as answer:
            assert b"Audit trail: a.jsonl" in answer.read()
        running.send_signal(signal.SIGINT)
        assert running.wait(30) == 0


def test_a_trail_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["audit", str(tmp_path / "none.jsonl")])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "none.jsonl" in done.stderr
    assert done.stderr.count("\n") == 1
