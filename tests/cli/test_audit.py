"""`fedra audit`, on a trail that a rule's verdicts wrote."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from fedra.cli import app


def test_a_trail_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["audit", str(tmp_path / "none.jsonl")])
    assert done.exit_code == 2
    assert done.stdout == ""
    assert "none.jsonl" in done.stderr
    assert done.stderr.count("\n") == 1
