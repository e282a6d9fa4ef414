"""Grids run by real processes on this machine."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.simulation.watching import stop_in

from fedra.experiments import Event, Failed, Finished, Grid, GridFolder, LocalEngine, Started, read_results, run_grid
from fedra.experiments.jobs import Report
from fedra.simulation import SimulationConfig, resume, simulate

FIXED = {"rounds": 12, "num_sampled": 20, "eval_every": 4, "checkpoint_every": 4}
ENGINE = LocalEngine(workers=2)


def own(name: str, **parameters: Any) -> dict[str, Any]:
    return {"attack": f"tests.experiments.own:{name}", "label": name, "params": parameters}


class NoEngine:
    """Runs nothing; fails the test where there is something to run."""

    def run(self, jobs: Any, report: Report) -> None:
        pytest.fail(f"asked to run {jobs}")


def test_results_are_the_bits_of_single_runs_and_come_once(tmp_path: Path) -> None:
    grid = Grid.from_dict(
        {"rules": ["fedra", "median"], "attacks": ["lie"], "alpha_q": [0, 10], "settings": ["fixed"], "fixed": FIXED}
    )
    seen: list[Event] = []
    outcome = run_grid(grid, out=tmp_path, name="g", engine=ENGINE, watch=seen.append)
    assert (outcome.reused, outcome.failed) == (0, {})
    assert sorted(event.run for event in seen if isinstance(event, Started)) == sorted(grid.runs)
    assert sorted(event.run for event in seen if isinstance(event, Finished)) == sorted(grid.runs)

    frame = outcome.results
    assert len(frame) == 4
    assert frame["run"].nunique() == 3
    assert list(frame["status"]) == ["done"] * 4
    assert frame.equals(read_results(tmp_path))
    assert (tmp_path / "results.parquet").is_file()
    assert (tmp_path / "results.csv").read_text(encoding="utf-8").count("\n") == 5
    for _, line in frame.iterrows():
        alone = simulate(SimulationConfig.from_dict(json.loads(line["config"])))
        assert line["weights_sha256"] == alone.summary["weights_sha256"]
        assert line["final_accuracy"] == alone.final_accuracy
    median = frame[frame["rule"] == "median"]
    assert list(median["alpha_q"]) == [0.0, 10.0]
    assert median["weights_sha256"].nunique() == 1

    again = run_grid(grid, out=tmp_path, name="g", engine=NoEngine())
    assert again.reused == 3
    assert again.results.equals(frame)


def test_what_fails_is_recorded_and_the_rest_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    values = {
        "attacks": [own("raising", at_round=8), own("told_threads"), own("deadly"), "none"],
        "settings": ["fixed"],
        "rules": ["fedavg"],
        "fixed": FIXED,
    }
    grid = Grid.from_dict(values)
    outcome = run_grid(grid, out=tmp_path, name="g", engine=ENGINE)
    by_attack = outcome.results.set_index("attack")
    failing = dict.fromkeys(("raising", "told_threads", "deadly"), "failed")
    assert by_attack["status"].to_dict() == {**failing, "none": "done"}
    assert by_attack.loc["raising", "error"] == "ArithmeticError: went wrong in round 8"
    assert by_attack.loc["told_threads", "error"] == "ArithmeticError: OMP_NUM_THREADS=1 torch=1"
    assert (os.environ["OMP_NUM_THREADS"], os.environ.get("MKL_NUM_THREADS")) == ("7", None)
    assert "was ended by SIGKILL" in by_attack.loc["deadly", "error"]
    raised = outcome.failed[by_attack.loc["raising", "run"]]
    recorded = json.loads((tmp_path / "runs" / raised.run / "error.json").read_text(encoding="utf-8"))
    assert recorded == {"error": raised.error, "traceback": raised.trace}
    assert "own.py" in raised.trace

    class Recording:
        jobs: tuple[str, ...] = ()

        def run(self, jobs: Any, report: Report) -> None:
            self.jobs = tuple(job.config.attack for job in jobs)
            for job in jobs:
                report(Failed(run=job.run, error="E", trace=""))

    engine = Recording()
    run_grid(grid, out=tmp_path, name="g", engine=engine)
    assert sorted(engine.jobs) == [f"tests.experiments.own:{name}" for name in sorted(failing)]


def test_an_unfinished_run_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    grid = Grid.from_dict({"rules": ["fedavg"], "attacks": ["optimize"], "alpha_q": [1], "fixed": FIXED})
    ((name, config),) = grid.runs.items()
    folder = tmp_path / "runs" / name

    with pytest.raises(KeyboardInterrupt):
        simulate(config, out=folder, observers=[stop_in(5)])
    GridFolder(path=tmp_path).record_failure(Failed(run=name, error="E", trace=""))
    rounds: list[int] = []
    outcome = run_grid(
        Grid.from_dict(
            {
                "rules": ["fedavg"],
                "attacks": ["optimize"],
                "alpha_q": [1],
                "fixed": {**FIXED, "data_dir": "moved", "checkpoint_every": 5},
            }
        ),
        out=tmp_path,
        name="g",
        engine=ENGINE,
        watch=lambda event: rounds.append(getattr(event, "round", 99)),
    )
    assert min(rounds) > 5
    assert list(outcome.results["weights_sha256"]) == [simulate(config).summary["weights_sha256"]]
    assert not (folder / "error.json").exists()
    assert resume(folder).summary["config"]["data_dir"] == "moved"
