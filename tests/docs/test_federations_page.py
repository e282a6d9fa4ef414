"""docs/federations.md, done from top to bottom in an empty directory."""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fedra.cli import app
from fedra.experiments import Grid, Results
from fedra.simulation import FEDERATION_SETTINGS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "federations.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)


def commands(text: str) -> list[list[str]]:
    """Return the page's commands, with few rounds; those on files that are not here are left out."""
    lines = [line for line in text.splitlines() if "shakespeare" not in line or "FEDRA_DATA" in os.environ]
    return [shlex.split(re.sub(r"--rounds \d+", "--rounds 2", line)) for line in lines]


def test_every_snippet_runs_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for language, text in SNIPPETS:
        if file := re.match(r"# ([\w.-]+)\n", text):
            Path(file[1]).write_text(text, encoding="utf-8")
        elif language == "sh":
            for program, *arguments in commands(text):
                assert program == "fedra", program
                done = CliRunner().invoke(app, arguments)
                assert done.exit_code == 0, f"{arguments}\n{done.output}"
        elif language == "python":
            exec(text, names)
        else:
            # How the table of silos is made, which takes minutes.
            assert language == "text", language
    for run in ("hospitals", "carriers-flights", "aircraft-flights"):
        assert Path(f"runs/{run}/result.json").is_file()
    assert 0 < json.loads(Path("runs/carriers-flights/result.json").read_text(encoding="utf-8"))["auc"] < 1
    assert Path("hospitals.svg").is_file()
    assert len(list(Path("runs/silos/runs").iterdir())) == 4


def test_the_keys_on_the_page_are_those_of_a_federation() -> None:
    section = PAGE.split("| key | meaning |")[1].split("\n\n")[0]
    named = set(re.findall(r"`(\w+)`", " ".join(line.split("|")[1] for line in section.splitlines() if "|" in line)))
    assert named == {"name", *FEDERATION_SETTINGS}


@pytest.mark.parametrize(("grid", "lines"), [("silos", 4 * 2 * 3), ("silos-carriers", 2 * 4)])
def test_the_tables_of_silos_are_the_committed_ones(grid: str, lines: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import silos

    results = Results.read(ROOT / "results" / "silos")
    shown = re.search(rf"<!-- {grid} -->\n(.*?)<!-- /{grid} -->", PAGE, re.DOTALL)
    assert shown is not None
    table = silos.table(results, grid)
    assert shown[1].strip() == table
    assert len(table.splitlines()) == 2 + lines
    cells = results.cells[results.cells["grid"] == grid]
    found = zip(*(cells[axis] for axis in ("dataset", "rule", "attack", "run")), strict=True)
    planned = Grid.read(ROOT / "benchmarks" / f"{grid}.toml")
    assert set(found) == {(cell.dataset, cell.rule, cell.attack, cell.run) for cell in planned.cells}
    assert set(cells["status"]) == {"done"}
