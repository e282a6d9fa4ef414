"""An attacker changes a grid's folder, or the compact results that somebody has committed.

A cell that makes no sense is shown as failed and every other cell as before; a file that makes none is named. Nothing
outside the folder is read.
"""

from __future__ import annotations

import json
import re
import shutil
from functools import partial

import numpy as np
import pandas as pd
import pytest
import typer
from tests.report.small_grid import fail, small_grid
from tests.security.mutations import DAMAGES, VALUES, copied, files_of, json_text, with_value, within
from tests.simulation.watching import stop_in
from typer.testing import CliRunner

from fedra.cli import app
from fedra.cli.console import errors_reported
from fedra.experiments import Results, run_grid
from fedra.experiments.jobs import Attempts
from fedra.report import build_report
from fedra.simulation import simulate

GRID = {
    "rules": ["fedavg", "fedra"],
    "attacks": ["none", "lie"],
    "alpha_q": [10],
    "fixed": {"rounds": 4, "eval_every": 2, "num_sampled": 16, "checkpoint_every": 2},
}
FUZZED = 60
NAME = "paper-small"


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A grid's folder with two grids, one run unfinished and one failed; and its compact results."""
    path = tmp_path_factory.mktemp("grids")
    small_grid(path / "grid", values=GRID, name=NAME)
    study = small_grid(path / "grid", values={**GRID, "rules": ["fedra"], "seeds": [1]}, name="study")
    stopped, failed = study.runs
    shutil.rmtree(path / "grid" / "runs" / stopped)
    shutil.rmtree(path / "grid" / "runs" / failed)
    with pytest.raises(KeyboardInterrupt):
        simulate(study.runs[stopped], out=path / "grid" / "runs" / stopped, observers=[stop_in(2)])
    fail(path / "grid", failed)
    Results.read(path / "grid").write(path / "compact")
    return path


def cells_of(path):
    return json.loads((path / "grids" / f"{NAME}.json").read_text(encoding="utf-8"))


def written(path, cells):
    (path / "grids" / f"{NAME}.json").write_text(json_text(cells), encoding="utf-8")


def nested(levels):
    return {} if not levels else {"a": nested(levels - 1)}


CELLS = {
    "a huge seed": {"seed": 10**30},
    "a seed of text": {"seed": "one"},
    "alpha_q of text": {"alpha_q": "many"},
    "alpha_q without end": {"alpha_q": float("inf")},
    "a rule that is a list": {"rule": ["fedra"]},
    "a data set with half a letter": {"dataset": "\ud800"},
    "a label without end": {"rule": "x" * 100_000},
    "settings too deep": {"config": {"rule_params": nested(500)}},
    "settings of text": {"config": {"rounds": "many", "lr": "fast"}},
    "settings of another kind": {"config": [1]},
    "a run elsewhere": {"run": "../../elsewhere"},
    "a run at the root": {"run": "/elsewhere"},
    "a run with a zero": {"run": "a\0b"},
    "a run that is a number": {"run": 7},
}


@pytest.mark.parametrize("change", CELLS.values(), ids=CELLS)
def test_an_odd_cell_is_shown_as_failed_and_the_others_as_before(folders, tmp_path, change):
    path = copied(folders / "grid", tmp_path / "deep" / "grid")
    before = Results.read(path).cells
    # What a name that leads out of the folder would find.
    shutil.copytree(path / "runs" / cells_of(path)[0]["run"], tmp_path / "deep" / "elsewhere")
    cells = cells_of(path)
    cells[1] = {**cells[1], **change}
    written(path, cells)
    with within(120):
        told = CliRunner().invoke(app, ["report", str(path), "--no-figures", "--json"])
    assert told.exit_code == 0, told.output + repr(told.exception)
    after = Results.read(path).cells
    assert after["status"][1] == "failed"
    assert re.match(f"cell 2 of grid {NAME} cannot be read: .*{next(iter(change))}", after["error"][1])
    pd.testing.assert_frame_equal(after.drop(1), before.drop(1))
    page = (path / "report" / "report.html").read_text(encoding="utf-8")
    assert f"cell 2 of grid {NAME} cannot be read" in page
    assert all(f"{accuracy:.2f}" in page for accuracy in after["final_accuracy"].dropna())


COMPACT = {
    "bins that are no numbers": ("scores.parquet", "low", np.nan),
    "bins without end": ("scores.parquet", "high", np.inf),
    "counts below zero": ("scores.parquet", "count", -(2**62)),
    "accuracy without end": ("curves.parquet", "accuracy", np.inf),
    "accuracy above all": ("results.parquet", "final_accuracy", 1e300),
    "a round below zero": ("curves.parquet", "round", -(2**63)),
    "no status": ("results.parquet", "status", "splendid"),
    "no seed": ("results.parquet", "seed", None),
    "settings that are no JSON": ("results.parquet", "config", "{"),
    "settings too deep": ("results.parquet", "config", "[" * 5000),
    "no rule": ("results.parquet", "rule", None),
}


@pytest.mark.parametrize(("name", "column", "value"), COMPACT.values(), ids=COMPACT)
def test_an_odd_line_of_compact_results_costs_its_own_run(folders, tmp_path, name, column, value):
    path = copied(folders / "compact", tmp_path / "compact")
    before = Results.read(path).cells
    frame = pd.read_parquet(path / name)
    values = list(frame[column].astype(object))
    values[0] = value
    frame[column] = pd.Series(values, dtype=None if isinstance(value, str) else frame[column].dtype)
    frame.to_parquet(path / name)
    with within(120):
        told = CliRunner().invoke(app, ["report", str(path), "--no-figures"])
    assert told.exit_code == 0, told.output + repr(told.exception)
    after = Results.read(path).cells
    odd = after["error"].notna() & before["error"].isna()
    assert odd.sum() == 1
    assert after["error"][odd].str.contains("cannot be read").all()
    pd.testing.assert_frame_equal(after[~odd], before[~odd])


class Here:
    """Runs jobs in this process."""

    def run(self, jobs, report):
        attempt = Attempts()
        for job in jobs:
            report(attempt(job, report))


@pytest.mark.parametrize("damage", ["{", "[]", '{"rounds": 4}', "9" * 5000, "[" * 5000, b"\xff\xfe", None])
def test_a_grid_with_a_changed_result_fails_that_run_and_writes_the_others(folders, tmp_path, damage):
    path = copied(folders / "grid", tmp_path / "grid")
    grid = small_grid(path, values=GRID, name=NAME)
    run = next(iter(grid.runs))
    file = path / "runs" / run / "result.json"
    if damage is None:
        DAMAGES["a folder"](file, None)
    else:
        file.write_bytes(damage if isinstance(damage, bytes) else damage.encode())
    with within(120):
        outcome = run_grid(grid, out=path, name=NAME, engine=Here())
    assert set(outcome.failed) == {run}
    assert str(file) in outcome.failed[run].error
    lines = outcome.results.set_index("run")
    assert set(lines.loc[[run], "status"]) == {"failed"}
    assert set(lines.drop(run).query("grid == @NAME")["status"]) == {"done"}


def test_a_run_of_fewer_rounds_than_it_says_is_told(folders, tmp_path):
    path = copied(folders / "grid", tmp_path / "grid")
    run = cells_of(path)[0]["run"]
    file = path / "runs" / run / "rounds.parquet"
    pd.read_parquet(file).head(3).to_parquet(file)
    results = Results.read(path)
    told = results.cells.set_index("run")["error"][run]
    assert "does not have the rounds of rounds 1 to 4: it has 3 lines of 3 rounds, 1 to 3" in told
    assert run not in set(results.curves["run"])


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_any_mutation_makes_a_report_of_all_the_rest_or_a_line(folders, tmp_path, capsys, seed):
    rng = np.random.default_rng(seed)
    whole = Results.read(folders / "grid").cells
    seen = {"made": 0, "told": 0}
    for number in range(FUZZED // 3):
        kind = ("grid", "grid", "compact")[rng.integers(3)]
        path = copied(folders / kind, tmp_path / "work")
        file, what = _mutated(path, rng)
        said = f"seed {seed}, number {number}: {file.relative_to(path)}, {what}"
        capsys.readouterr()
        try:
            with within(120), errors_reported():
                build_report(path, tmp_path / "report", figures=False)
                found = Results.read(path).cells
        except typer.Exit:
            assert str(file) in capsys.readouterr().err.replace("\n", ""), said
            seen["told"] += 1
        except BaseException as error:
            raise AssertionError(said) from error
        else:
            seen["made"] += 1
            if "/runs/" in str(file):
                others = whole["run"] != file.relative_to(path).parts[1]
                pd.testing.assert_frame_equal(found[others], whole[others])
            assert len(found) >= len(whole) - 1 or what == "missing", said
    assert min(seen.values()) > 1


def _mutated(path, rng):
    files = files_of(path)
    if rng.integers(2) and (texts := [file for file in files if file.suffix == ".json"]):
        files = texts
    file = files[rng.integers(len(files))]
    if file.suffix == ".json" and rng.integers(5):
        changed = with_value(json.loads(file.read_text(encoding="utf-8")), rng)
        file.write_text(json_text(changed), encoding="utf-8")
        return file, "a value"
    if file.name in ("results.parquet", "curves.parquet", "scores.parquet") and rng.integers(3):
        return file, _odd_frame(file, rng)
    what = list(DAMAGES)[rng.integers(len(DAMAGES))]
    DAMAGES[what](file, rng)
    return file, what


def _odd_frame(file, rng):
    frame = pd.read_parquet(file)
    column = frame.columns[rng.integers(frame.shape[1])]
    values = list(frame[column].astype(object))
    values[rng.integers(len(values))] = value = VALUES[rng.integers(len(VALUES))]
    for series in (partial(pd.Series, values), partial(pd.Series, [None] * len(values))):
        try:
            frame.assign(**{column: series()}).to_parquet(file)
        except (ValueError, TypeError, OverflowError):
            continue
        return f"{column} {str(value)[:40]!r}"
    raise AssertionError("a column of nothing can be written")
