"""Running a grid into its folder, and observers that watch each run in the process that runs it."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.security.planting import InThisProcess
from tests.simulation.watching import stop_in

from fedra.experiments import Event, Failed, Finished, Grid, Job, LocalEngine, missing_runs, run_grid
from fedra.experiments.jobs import Attempts, Report
from fedra.server import Observer, RoundRecord, RunInfo
from fedra.simulation import simulate

VALUES = {"rules": ["fedavg", "median"], "attacks": ["lie"], "fixed": {"rounds": 4, "num_sampled": 10}}


class Notes(Observer):
    """Writes what it sees into a file of the run's name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def start(self, run: RunInfo) -> None:
        self._note(run.run, f"start {run.platform} {run.rounds_done} {run.settings['rule']}")

    def round(self, record: RoundRecord) -> None:
        self._note(record.run, f"round {record.round} {len(record.clients)}")

    def end(self, run: RunInfo, summary: Mapping[str, Any]) -> None:
        self._note(run.run, f"end {summary.get('weights_sha256')}")

    def _note(self, run: str, line: str) -> None:
        with (self.folder / run).open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")


def test_observers_go_with_each_run_to_its_process(tmp_path: Path) -> None:
    grid = Grid.from_dict(VALUES)
    (tmp_path / "notes").mkdir()
    engine = LocalEngine(workers=2)
    outcome = run_grid(grid, out=tmp_path / "g", name="g", engine=engine, observers=[Notes(tmp_path / "notes")])
    assert outcome.failed == {}
    hashes = dict(zip(outcome.results["run"], outcome.results["weights_sha256"], strict=True))
    assert {file.name for file in (tmp_path / "notes").iterdir()} == set(grid.runs)
    for run, config in grid.runs.items():
        lines = (tmp_path / "notes" / run).read_text(encoding="utf-8").splitlines()
        rounds = [f"round {number} 10" for number in range(1, 5)]
        assert lines == [f"start simulation 0 {config.rule}", *rounds, f"end {hashes[run]}"]


def test_an_observer_that_cannot_be_sent_is_an_error_before_any_run(tmp_path: Path) -> None:
    observer = Notes(tmp_path)
    observer.lock = threading.Lock()  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match=r"observer Notes cannot be sent to the processes .*open files .* in start\(\)"):
        run_grid(Grid.from_dict(VALUES), out=tmp_path / "g", name="g", engine=InThisProcess(), observers=[observer])
    with pytest.raises(TypeError, match="give instances of"):
        run_grid(Grid.from_dict(VALUES), out=tmp_path / "g", name="g", engine=InThisProcess(), observers=[print])  # type: ignore[list-item]
    assert not (tmp_path / "g").exists()


@pytest.mark.parametrize("rule", ["centered-clipping", "tests.simulation.own:Seniority"])
def test_a_grid_goes_on_with_what_a_rule_remembered(tmp_path: Path, rule: str) -> None:
    fixed = {"rounds": 6, "num_sampled": 10, "checkpoint_every": 2}
    grid = Grid.from_dict({"rules": [rule], "attacks": ["lie"], "fixed": fixed})
    ((name, config),) = grid.runs.items()
    with pytest.raises(KeyboardInterrupt):
        simulate(config, out=tmp_path / "runs" / name, observers=[stop_in(2)])
    (tmp_path / "notes").mkdir()
    observers = [Notes(tmp_path / "notes")]
    outcome = run_grid(grid, out=tmp_path, name="g", engine=LocalEngine(workers=1), observers=observers)
    assert (tmp_path / "notes" / name).read_text(encoding="utf-8").startswith(f"start simulation 3 {rule}\nround 4 10")
    assert list(outcome.results["weights_sha256"]) == [simulate(config).summary["weights_sha256"]]
    assert json.loads((tmp_path / "runs" / name / "result.json").read_text(encoding="utf-8"))["rounds"] == 6


GRID = Grid.from_dict({"rules": ["fedavg", "median", "uniform"], "fixed": {"rounds": 2, "num_sampled": 20}})


class Engine:
    """Runs jobs in this process, but for those of some rules, which fail, and stops where it is told to."""

    def __init__(self, *, failing: str = "", stop_before: str = "") -> None:
        self.seen: list[str] = []
        self._failing, self._stop_before = failing, stop_before

    def run(self, jobs: Sequence[Job], report: Report) -> None:
        for job in jobs:
            if job.config.rule == self._stop_before:
                raise KeyboardInterrupt
            self.seen.append(job.config.rule)
            failed = Failed(run=job.run, error="E: no", trace="...")
            report(failed if job.config.rule == self._failing else Attempts()(job, report))


def test_only_what_is_missing_runs_and_failures_are_tried_again(tmp_path: Path) -> None:
    first, events = Engine(failing="median"), list[Event]()
    outcome = run_grid(GRID, out=tmp_path, name="g", engine=first, watch=events.append)
    assert (outcome.reused, [failed.error for failed in outcome.failed.values()]) == (0, ["E: no"])
    assert sorted(outcome.results["status"]) == ["done", "done", "failed"]
    assert sum(isinstance(event, Finished) for event in events) == 2
    again = Engine()
    outcome = run_grid(GRID, out=tmp_path, name="g", engine=again)
    assert again.seen == ["median"]
    assert (outcome.reused, outcome.failed) == (2, {})
    assert set(outcome.results["status"]) == {"done"}


def test_stopped_in_the_middle_the_results_are_written_all_the_same(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_grid(GRID, out=tmp_path, name="g", engine=Engine(stop_before="uniform"))
    assert (tmp_path / "results.csv").read_text(encoding="utf-8").count(",done,") == 2
    assert [job.config.rule for job in missing_runs(GRID, tmp_path)] == ["uniform"]


def test_what_was_begun_comes_first(tmp_path: Path) -> None:
    begun = next(cell.run for cell in GRID.cells if cell.rule == "uniform")
    (tmp_path / "runs" / begun).mkdir(parents=True)
    assert [job.config.rule for job in missing_runs(GRID, tmp_path)] == ["uniform", "fedavg", "median"]


def test_nothing_to_run_starts_no_engine(tmp_path: Path) -> None:
    run_grid(GRID, out=tmp_path, name="g", engine=Engine())
    idle = Engine(stop_before="fedavg")
    assert run_grid(GRID, out=tmp_path, name="other", engine=idle).reused == 3
    assert idle.seen == []
