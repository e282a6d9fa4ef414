"""docs/experiments.md, done from top to bottom in an empty directory."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fedra.cli import app
from fedra.experiments import Grid
from fedra.experiments.grid import AXES

PAGE = (Path(__file__).parents[2] / "docs" / "experiments.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)


def test_every_snippet_runs_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for language, text in SNIPPETS:
        if language == "toml":
            Path(re.match(r"# ([\w.]+)\n", text)[1]).write_text(text, encoding="utf-8")  # type: ignore[index]
        elif language == "python":
            exec(text, names)
        elif "--engine ray" not in text:
            for line in text.splitlines():
                program, *arguments = shlex.split(line)
                assert program == "fedra", line
                done = CliRunner().invoke(app, arguments)
                assert done.exit_code == 0, f"{line}\n{done.output}"
    assert set(names["frame"]["grid"]) == {"small", "blocks"}
    assert set(names["table"].index) == {"fedavg", "median", "fedra", "fedra, pooled"}
    assert len(names["mnist"]) == 6 * 3 * 5
    small = Grid.read(Path("small.toml"))
    assert f"`{len(small.cells)} cells, {len(small.runs)} distinct runs, 0 done already" in PAGE


def test_the_lists_on_the_page_are_the_lists() -> None:
    section = PAGE.split("## A grid is a file")[1].split("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \| `(\w+)` \|", section, re.MULTILINE) == list(AXES.items())
