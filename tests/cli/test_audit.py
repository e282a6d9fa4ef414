"""`fedra audit`: a trail's summary on the terminal, and its page."""

from __future__ import annotations

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


def test_a_trail_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["audit", str(tmp_path / "none.jsonl")])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "none.jsonl" in done.stderr
    assert done.stderr.count("\n") == 1
