"""Somebody hands over a file or folder that names code: none of it is imported unless the user says --trust.

The canary is a module that works as a rule, an attack, a data set and a model, and says when it is imported.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from tests.audit.records import round_record
from tests.report.small_grid import small_grid
from tests.security.planting import InThisProcess
from tests.simulation.watching import stop_in
from typer.testing import CliRunner, Result

from fedra.audit import AuditLog
from fedra.cli import app
from fedra.experiments import Grid, Results, read_results, run_grid
from fedra.report import build_report
from fedra.simulation import RunFolder, SimulationConfig, read_toml, resume, simulate

CANARY = """
from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from fedra import Decision, Family, Rule
from fedra.data import load_dataset


@dataclass(frozen=True, kw_only=True)
class Mine(Rule):
    name: ClassVar[str] = "mine"
    family: ClassVar[Family] = Family.AWARE

    def decide(self, cohort):
        return Decision(weights=cohort.shares)


def attack(view, rng):
    return -view.own_gradients


def dataset(data_dir):
    return load_dataset("digits")


def model(input_shape, num_classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(64, num_classes))
"""
OWN = {"rule": "canary:Mine", "attack": "canary:attack", "dataset": "canary:dataset", "model": "canary:model"}
SETTINGS = {"rounds": 2, "num_sampled": 10, "lr": 0.01, "partition_seed": 0}
GRIDS: dict[str, dict[str, Any]] = {
    "rule": {"rules": ["fedavg", OWN["rule"]]},
    "rule in a table": {"rules": [{"rule": OWN["rule"], "label": "fedavg"}]},
    "attack": {"attacks": [OWN["attack"]]},
    "data set": {"datasets": [{"dataset": OWN["dataset"]}]},
    "model": {"fixed": {**SETTINGS, "model": OWN["model"]}},
    "model of an entry": {"rules": [{"rule": "fedavg", "fixed": {"model": OWN["model"]}}]},
    "rule of a block": {"blocks": [{}, {"seeds": [1], "rules": [OWN["rule"]]}]},
    "model of a block": {"blocks": [{"fixed": {"model": OWN["model"]}}]},
}


@pytest.fixture(autouse=True)
def canary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], bool]]:
    """A working directory with the module in it; tells whether it was imported since it was asked last."""
    (tmp_path / "canary.py").write_text(CANARY, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)

    def sang() -> bool:
        return sys.modules.pop("canary", None) is not None

    sang()
    yield sang
    sang()


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def folder_of(settings: dict[str, Any], name: str = "run") -> Path:
    """A run folder in which nothing has been run, as somebody could write it by hand."""
    path = Path(name)
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    (path / "config.toml").write_text(tomli_w.dumps(settings), encoding="utf-8")
    return path


def assert_refused(told: Result, *words: str) -> None:
    assert told.exit_code == 2, told.output
    assert told.stderr.count("\n") == 1
    for word in (*words, "--trust"):
        assert word in told.stderr


@pytest.mark.parametrize("setting", OWN)
def test_a_run_folder_or_file_that_names_code_needs_trust(setting: str, canary: Callable[[], bool]) -> None:
    folder = folder_of({**SETTINGS, setting: OWN[setting]})
    said = f"{setting} = '{OWN[setting]}'"
    assert_refused(call("run", "--resume", "run"), "run/config.toml", said)
    assert_refused(call("run", "--config", "run/config.toml", "--out", "x"), "run/config.toml", said)
    for read in (resume, RunFolder.existing, lambda path: SimulationConfig.read(path / "config.toml")):
        with pytest.raises(ValueError, match=f"has {said}: code that would be imported"):
            read(folder)
    assert not canary()
    assert not Path("x").exists()
    assert [path.name for path in folder.iterdir()] == ["config.toml"]

    trusted = call("run", "--config", "run/config.toml", "--out", "x", "--trust", "--quiet")
    assert trusted.exit_code == 0, trusted.output
    assert canary()
    assert call("run", "--resume", "run", "--trust", "--quiet").exit_code == 0
    assert canary()


def test_what_is_typed_is_the_users_own_word(canary: Callable[[], bool]) -> None:
    folder_of({**SETTINGS, "rule": "elsewhere:Rule", "attack": "lie"})
    flags = [word for setting, name in OWN.items() for word in (f"--{setting}", name)]
    done = call("run", "--config", "run/config.toml", *flags, "--out", "x", "--quiet")
    assert done.exit_code == 0, done.output
    assert canary()
    # From here on it is a file's word.
    (Path("x") / "result.json").unlink()
    assert_refused(call("run", "--resume", "x"), *OWN.values())


def test_a_stopped_run_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(config: SimulationConfig, *, out: Path, observers: object) -> None:
        RunFolder.create(out, config)
        raise KeyboardInterrupt

    monkeypatch.setattr("fedra.simulation.simulate", stopped)
    for rule, flag in ((OWN["rule"], " --trust"), ("fedavg", "")):
        told = call("run", "--rule", rule, "--out", rule[:3])
        assert told.stderr.endswith(f"Resume with: fedra run --resume {rule[:3]}{flag}\n")


def test_any_setting_may_be_hostile(canary: Callable[[], bool]) -> None:
    plain = SimulationConfig(**SETTINGS).to_dict()
    for setting in plain:
        for value in ("canary:Mine", "canary:attack", ["canary:Mine"], {"rule": "canary:Mine"}, {"canary:Mine": 1}):
            settings = {key: item for key, item in plain.items() if item is not None} | {setting: value}
            folder_of(settings)
            told = call("run", "--resume", "run", "--quiet")
            assert told.exit_code != 0 or "data_dir" in setting, (setting, value)
            assert not canary(), (setting, value)


@pytest.mark.parametrize("values", GRIDS.values(), ids=GRIDS)
def test_a_grid_that_names_code_needs_trust(values: dict[str, Any], canary: Callable[[], bool]) -> None:
    text = tomli_w.dumps({"attacks": ["lie"], "fixed": SETTINGS} | values)
    Path("g.toml").write_text(text, encoding="utf-8")
    for flags in (["--dry-run"], []):
        assert_refused(call("grid", "g.toml", *flags), "g.toml has ", "canary:")
    with pytest.raises(ValueError, match="code that would be imported"):
        Grid.read(Path("g.toml"))
    assert not canary()
    assert not Path("runs").exists()
    assert call("grid", "g.toml", "--dry-run", "--trust").exit_code == 0
    grid = Grid.read(Path("g.toml"), trust=True)
    assert not run_grid(grid, out=Path("x"), name="g", engine=InThisProcess()).failed
    assert canary()


def test_trust_reaches_the_processes_that_run_a_grid() -> None:
    values = {"rules": [OWN["rule"]], "attacks": [OWN["attack"]], "datasets": [OWN["dataset"]]}
    fixed = {**SETTINGS, "model": OWN["model"], "checkpoint_every": 1}
    Path("g.toml").write_text(tomli_w.dumps({**values, "fixed": fixed}), encoding="utf-8")
    done = call("grid", "g.toml", "--trust", "--workers", "1", "--out", "x", "--json")
    assert done.exit_code == 0, done.output
    # And those that go on with a run that was stopped.
    (run,) = Path("x/runs").iterdir()
    config = SimulationConfig.read(run / "config.toml", trust=True)
    shutil.rmtree(run)
    with pytest.raises(KeyboardInterrupt):
        simulate(config, out=run, observers=[stop_in(0)])
    done = call("grid", "g.toml", "--trust", "--workers", "1", "--out", "x", "--json")
    assert done.exit_code == 0, done.output
    assert list(read_results("x")["status"]) == ["done"]


def leaves(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where there are texts in plain values."""
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(item, (*at, key))
    elif isinstance(value, str):
        yield at


def replaced(value: Any, at: tuple[Any, ...], new: Any) -> Any:
    """The values with something else in one place."""
    if not at:
        return new
    copy = value.copy()
    copy[at[0]] = replaced(value[at[0]], at[1:], new)
    return copy


@pytest.fixture(scope="module")
def grid_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("grid")
    values = {"rules": ["fedavg"], "attacks": ["lie"], "alpha_q": [1], "fixed": SETTINGS}
    small_grid(path, values=values)
    return path


def test_a_report_imports_nothing_that_a_folder_names(grid_folder: Path, canary: Callable[[], bool]) -> None:
    for file in sorted(path for path in grid_folder.rglob("*") if path.suffix in (".json", ".toml")):
        toml = file.suffix == ".toml"
        values = read_toml(file) if toml else json.loads(file.read_text(encoding="utf-8"))
        for place in leaves(values):
            for name in ("canary:Mine", "canary:attack"):
                shutil.rmtree("hostile", ignore_errors=True)
                shutil.copytree(grid_folder, "hostile")
                hostile = replaced(values, place, name)
                text = tomli_w.dumps(hostile) if toml else json.dumps(hostile)
                (Path("hostile") / file.relative_to(grid_folder)).write_text(text, encoding="utf-8")
                call("report", "hostile", "--no-figures", "--quiet")
                assert not canary(), (file, place)
    call("report", str(grid_folder), "--quiet", "--out", "made")
    assert Path("made/report.html").is_file()


def test_a_report_imports_nothing_that_compact_results_name(grid_folder: Path, canary: Callable[[], bool]) -> None:
    results = Results.read(grid_folder)
    for column in results.cells.columns:
        cells = results.cells.astype({column: "object"})
        cells[column] = "canary:Mine"
        hostile = Results(cells=cells.astype("string"), curves=results.curves, scores=results.scores)
        hostile.write("hostile")
        call("report", "hostile", "--no-figures", "--quiet")
        assert not canary(), column
    config = json.dumps(json.loads(results.cells["config"].iloc[0]) | OWN)
    named = {key: OWN[key] for key in ("rule", "attack", "dataset")}
    cells = results.cells.assign(config=config, **named).astype(results.cells.dtypes)
    Results(cells=cells, curves=results.curves, scores=results.scores).write("hostile")
    build_report("hostile", figures=False)
    assert not canary()


def test_a_folder_of_the_papers_runs_gets_nothing_imported(canary: Callable[[], bool]) -> None:
    few = ("paper", "table2", "--datasets", "digits", "--rules", "fedavg", "--alpha-q", "0", "--out", "p")
    plan = json.loads(call(*few, "--dry-run", "--json").stdout)
    for run in plan["runs"]:
        Path("p/runs").mkdir(parents=True, exist_ok=True)
        folder_of({**SETTINGS, **OWN}, f"p/runs/{run['run']}")
    Path("p/grids").mkdir()
    cell = {"run": plan["runs"][0]["run"], **OWN, "alpha_q": 0.0, "seed": 0, "partition": "iid", "setting": "fixed"}
    Path("p/grids/paper-x.json").write_text(json.dumps([{**cell, "config": OWN}]), encoding="utf-8")
    assert call(*few, "--dry-run").exit_code == 0
    assert not canary()


def test_going_on_with_a_grid_runs_what_the_file_says_not_the_folder(canary: Callable[[], bool]) -> None:
    grid = Grid.from_dict({"rules": ["fedavg"], "attacks": ["lie"], "fixed": SETTINGS})
    (run,) = grid.runs
    Path("x/runs").mkdir(parents=True)
    folder_of({**SETTINGS, **OWN}, f"x/runs/{run}")
    outcome = run_grid(grid, out=Path("x"), name="g", engine=InThisProcess())
    assert not outcome.failed
    assert not canary()
    assert SimulationConfig.read(Path("x/runs") / run / "config.toml").rule == "fedavg"


def test_an_audit_imports_nothing_that_a_trail_names(canary: Callable[[], bool]) -> None:
    AuditLog("whole.jsonl").round(round_record(1))
    lines = [json.loads(line) for line in Path("whole.jsonl").read_text(encoding="utf-8").splitlines()]
    for place in leaves(lines):
        hostile = replaced(lines, place, "canary:Mine")
        Path("a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in hostile), encoding="utf-8")
        call("audit", "a.jsonl", "--html", "a.html")
        assert not canary(), place
