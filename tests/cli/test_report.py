"""`fedra report` as people call it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.paper.paper_results import grid_cells, paper_results
from tests.report.small_grid import small_grid
from typer.testing import CliRunner, Result

from fedra.cli import app
from fedra.experiments import Results


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("grid")
    small_grid(path, leave_out=("seed1", "median"))
    return path


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["report", *map(str, arguments)])


def test_it_tells_what_it_wrote(folder: Path, tmp_path: Path) -> None:
    done = call(folder, "--out", tmp_path / "out", "--compact", tmp_path / "small", "--title", "Mine & yours")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert f"page: {tmp_path / 'out' / 'report.html'}" in lines
    assert f"compact results: {tmp_path / 'small'}" in lines
    assert not [line for line in lines if "no results for" in line or "published" in line]
    assert lines[0].startswith("runs: ")
    assert " missing" in lines[0]
    assert "Mine &amp; yours" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert (tmp_path / "out" / "figures" / "curves-small-digits-iid-dynamic.svg").is_file()
    assert sorted(file.name for file in (tmp_path / "small").iterdir()) == [
        "curves.parquet",
        "results.parquet",
        "scores.parquet",
    ]
    again = call(tmp_path / "small", "--no-figures", "--quiet")
    assert (again.exit_code, again.stdout, again.stderr) == (0, "", "")
    assert (tmp_path / "small" / "report" / "report.html").is_file()
    first, second = (path / "tables" / "all.csv" for path in (tmp_path / "out", tmp_path / "small" / "report"))
    assert first.read_bytes() == second.read_bytes()


def test_as_json(folder: Path, tmp_path: Path) -> None:
    done = call(folder, "--out", tmp_path, "--no-figures", "--json")
    assert (done.exit_code, done.stderr) == (0, "")
    values = json.loads(done.stdout)
    assert values["page"] == str(tmp_path / "report.html")
    assert (values["figures"], values["compact"]) == ([], None)
    assert all(Path(file).is_file() for file in values["tables"])
    assert values["runs"]["done"] > 0
    assert not {"winners", "missing_figures"} & set(values)


def test_the_papers_results_say_who_wins(tmp_path: Path) -> None:
    paper_results(grid_cells(targets=("table2",))).write(tmp_path)
    done = call(tmp_path)
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert "no results for figure1, figure4, figure5, figure6" in lines
    assert any(line.startswith("winner as published in ") for line in lines)
    values = json.loads(call(tmp_path, "--json").stdout)
    assert values["missing_figures"] == ["figure1", "figure4", "figure5", "figure6"]
    assert values["winners"]["table2-mnist"]["columns"] == 6


def test_one_run(folder: Path, tmp_path: Path) -> None:
    run = next(path for path in sorted((folder / "runs").iterdir()) if "fedra" in path.name)
    done = call(run, "--out", tmp_path)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[0] == "runs: 1 done"
    assert f"<h1>Run {run.name}</h1>" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_folder_without_results_is_told(tmp_path: Path) -> None:
    done = call(tmp_path)
    assert done.exit_code == 2
    assert "holds no results" in done.stderr
    assert "Traceback" not in done.stderr
    missing = call(tmp_path / "nowhere")
    assert missing.exit_code == 2
    assert not list(tmp_path.iterdir())


def test_as_a_process(folder: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fedra", "report", str(folder), "--out", str(tmp_path), "--no-figures"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "page: " in done.stdout


def test_results_are_added_to_those_that_are_there(folder: Path, tmp_path: Path) -> None:
    """The runs may be gone by the time that others are done."""
    first, second = tmp_path / "first", tmp_path / "second"
    small_grid(first, leave_out=("median",))
    small_grid(second, leave_out=("fedra",))
    small = tmp_path / "small"
    for source, options in ((first, ()), (second, ("--add",))):
        done = call(source, "--out", tmp_path / "out", "--compact", small, "--no-figures", *options)
        assert done.exit_code == 0, done.output
    cells = Results.read(small).cells
    assert set(cells.loc[cells["status"] == "done", "rule"]) == set(Results.read(first).cells["rule"])
    assert (cells["status"] == "done").all()


def test_adding_needs_somewhere_to_add_to(folder: Path, tmp_path: Path) -> None:
    done = call(folder, "--out", tmp_path / "out", "--add", "--no-figures")
    assert done.exit_code == 2
    assert "give --compact FOLDER" in done.stderr
