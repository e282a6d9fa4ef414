"""docs/report.md stays true: its snippet runs, and every option is one that the command has."""

import contextlib
import io
import re
from pathlib import Path

from tests.report.small_grid import small_grid
from typer.testing import CliRunner

from fedra.cli import app

PAGE = (Path(__file__).parents[2] / "docs" / "report.md").read_text(encoding="utf-8")


def test_the_snippet_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small_grid(tmp_path / "runs" / "small", leave_out=("seed1", "q10"))
    (snippet,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(snippet, {})
    assert "small-digits-iid-dynamic FedRA" in printed.getvalue()
    assert (tmp_path / "report" / "report.html").is_file()


def test_options_exist():
    known = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["report", "--help"]).output
    options = set(re.findall(r"--[a-z][a-z-]+", PAGE))
    assert options >= {"--out", "--compact", "--title", "--no-figures", "--json", "--quiet"}
    assert all(option in known for option in options), options
