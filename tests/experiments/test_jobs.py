"""One job in this process: run, go on, fail, and what is reported on the way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.simulation.watching import stop_in

from fedra.data import load_dataset
from fedra.experiments import Advanced, Event, Failed, Finished, Job, Started, jobs
from fedra.experiments.jobs import ERROR, Attempts
from fedra.simulation import SimulationConfig, simulate

CONFIG = SimulationConfig(rounds=6, num_sampled=20, eval_every=3, checkpoint_every=2, attack="lie", setting="fixed")


def job(tmp_path: Path, config: SimulationConfig = CONFIG) -> Job:
    return Job(run="one", config=config, folder=tmp_path / "one")


def attempted(given: Job) -> tuple[Finished | Failed, list[Event]]:
    seen: list[Event] = []
    return Attempts()(given, seen.append), seen


def test_a_job_runs_and_reports_every_measured_accuracy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs.time, "monotonic", lambda: 1.0)
    outcome, seen = attempted(job(tmp_path))
    assert isinstance(outcome, Finished)
    assert outcome.accuracy == simulate(CONFIG).final_accuracy
    assert outcome.seconds > 0
    assert seen[0] == Started(run="one")
    measured = [event.round for event in seen if isinstance(event, Advanced) and event.accuracy is not None]
    assert measured[-2:] == [3, 6]
    assert (tmp_path / "one" / "result.json").is_file()


def test_rounds_between_are_reported_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def clock() -> Iterator[float]:
        now = 1000.0
        while True:
            yield now
            now += 0.3

    ticks = clock()
    monkeypatch.setattr(jobs.time, "monotonic", lambda: next(ticks))
    _, seen = attempted(job(tmp_path))
    assert [event.round for event in seen if isinstance(event, Advanced)] == [1, 3, 5, 6]


def test_an_error_is_an_outcome(tmp_path: Path) -> None:
    bad = SimulationConfig(
        rounds=6, num_sampled=20, checkpoint_every=2, setting="fixed", attack="tests.experiments.own:raising",
        attack_params={"at_round": 4},
    )  # fmt: skip
    outcome, _ = attempted(job(tmp_path, bad))
    assert isinstance(outcome, Failed)
    assert outcome.error == "ArithmeticError: went wrong in round 4"
    assert "own.py" in outcome.trace


def test_it_goes_on_from_its_checkpoint_and_forgets_the_error(tmp_path: Path) -> None:
    folder = tmp_path / "one"
    with pytest.raises(KeyboardInterrupt):
        simulate(CONFIG, out=folder, observers=[stop_in(3)])
    (folder / ERROR).write_text(json.dumps({"error": "E"}), encoding="utf-8")
    outcome, seen = attempted(job(tmp_path))
    assert isinstance(outcome, Finished)
    assert min(event.round for event in seen if isinstance(event, Advanced)) > 3
    assert not (folder / ERROR).exists()
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    assert result["weights_sha256"] == simulate(CONFIG).summary["weights_sha256"]


def test_the_data_set_of_the_last_job_is_kept_for_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []

    def counting(name: str, data_dir: Any = None, **options: Any) -> Any:
        loaded.append(name)
        return load_dataset("digits")

    monkeypatch.setattr(jobs, "load_dataset", counting)
    attempts = Attempts()
    for number, data_dir in enumerate([None, None, "elsewhere"]):
        config = SimulationConfig(rounds=1, num_sampled=20, data_dir=data_dir, seed=number)
        attempts(Job(run=str(number), config=config, folder=tmp_path / str(number)), lambda event: None)
    assert loaded == ["digits", "digits"]
