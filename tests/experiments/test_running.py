"""Running a grid into its folder, with engines that pretend."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from fedra.experiments import Event, Failed, Finished, Grid, Job, missing_runs, run_grid
from fedra.experiments.jobs import Attempts, Report

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
