from __future__ import annotations

import re
from pathlib import Path

from typer.testing import CliRunner

from fedra.cli import app


def test_the_demo_prints_a_table_and_names_its_picture(tmp_path: Path) -> None:
    picture = tmp_path / "new" / "curves.png"
    result = CliRunner().invoke(app, ["demo", "--rounds", "12", "--out", str(picture)])
    assert result.exit_code == 0, result.output
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert f"accuracy curves: {picture}" in result.stdout
    cells = {line.split()[0]: re.findall(r"\d+\.\d", line) for line in result.stdout.splitlines() if "." in line}
    for rule in ("FedAdam", "multi-krum", "RFA", "FedRA"):
        assert len(cells[rule]) == 3
    captured, held = float(cells["FedAdam"][2]), float(cells["FedRA"][2])
    assert captured < 20 < 60 < held
    assert "FedRA / optimize: round 12/12" in result.stderr


def test_quiet_shows_no_progress(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["demo", "--rounds", "1", "--out", str(tmp_path / "x.png"), "--quiet"])
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
