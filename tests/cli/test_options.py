"""Flags that several commands have: trackers of a run, a grid and the paper's runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from typer.testing import CliRunner

from fedra.cli import app

GRID = 'rules = ["fedavg", "median"]\nattacks = ["lie"]\n[fixed]\nrounds = 4\nnum_sampled = 10\n'


def rounds_in(folder: Path, tag: str = "train/kept") -> list[int]:
    read = EventAccumulator(str(folder))
    read.Reload()
    return [event.step for event in read.Scalars(tag)]


def invoke(*args: object) -> str:
    result = CliRunner().invoke(app, [str(arg) for arg in args], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_a_run_is_tracked_beside_its_records(tmp_path: Path) -> None:
    flags = ("--rounds", 4, "--num-sampled", 10, "--out", tmp_path / "one", "-q")
    invoke("run", *flags, "--track", "tensorboard", "--track", f"mlflow folder={tmp_path / 'm'}")
    assert rounds_in(tmp_path / "one" / "tensorboard" / "one") == [1, 2, 3, 4]
    assert (tmp_path / "m" / "mlflow.db").is_file()


def test_the_runs_of_a_grid_are_tracked_in_one_place(tmp_path: Path) -> None:
    (tmp_path / "g.toml").write_text(GRID, encoding="utf-8")
    invoke("grid", tmp_path / "g.toml", "--out", tmp_path / "g", "--workers", 2, "--track", "tensorboard", "-q")
    tracked = tmp_path / "g" / "tracking" / "tensorboard"
    assert {folder.name for folder in tracked.iterdir()} == {run.name for run in (tmp_path / "g" / "runs").iterdir()}
    assert all(rounds_in(folder) == [1, 2, 3, 4] for folder in tracked.iterdir())


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("tensorbord", "did you mean 'tensorboard'"),
        ("tensorboard fold=x", "has no parameter 'fold'; did you mean 'folder'"),
        ("json:dumps", "is not a subclass of fedra.server.Observer"),
    ],
)
def test_a_tracker_that_is_none_is_an_error_before_any_round(tmp_path: Path, spec: str, message: str) -> None:
    result = CliRunner().invoke(app, ["run", "--rounds", "2", "--out", str(tmp_path / "r"), "--track", spec])
    assert result.exit_code != 0
    assert message in result.output.replace("\n", " ")
    assert not (tmp_path / "r").exists()
