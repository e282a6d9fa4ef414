"""MLflow's store, read back by MLflow."""

import os
import shutil
import sqlite3
from contextlib import closing

import pytest
from tests.trackers.samples import HOSTILE, info, measured, mlflow_history, mlflow_runs, record, tracked

from fedra.files import write_new
from fedra.trackers import MLflow
from fedra.trackers import mlflow as module


@pytest.fixture(scope="module")
def empty_store(tmp_path_factory):
    """A store as the tracker makes it, which takes a second."""
    place = tmp_path_factory.mktemp("store")
    MLflow(folder=place).start(info("first", rounds=0))
    with closing(sqlite3.connect(place / "mlflow.db")) as store, store:
        for table in ("params", "tags", "runs", "experiments"):
            store.execute(f"DELETE FROM {table}")
    return place / "mlflow.db"


@pytest.fixture
def folder(empty_store, tmp_path):
    shutil.copy(empty_store, tmp_path)
    return tmp_path


def test_a_run_is_read_back(tmp_path):
    rounds = [*measured(1, 2), record(2, phase="evaluate", clients=[], metrics={"loss": 0.25})]
    tracked(MLflow(), info(folder=str(tmp_path)), rounds, {"final_accuracy": 0.2, "status": "done"})
    place = tmp_path / "mlflow"
    (run,) = mlflow_runs(place)
    assert run.info.run_name == "digits-fedra"
    assert run.info.status == "FINISHED"
    assert run.data.params == {
        "run": "digits-fedra",
        "platform": "simulation",
        "rule": "fedra",
        "rounds": "5",
        "seed": "3",
        "rule_params.gamma": "0.5",
    }
    assert mlflow_history(place, run, "train/accuracy") == [(1, 0.1), (2, 0.2)]
    assert mlflow_history(place, run, "train/kept") == [(1, 2.0), (2, 2.0)]
    assert mlflow_history(place, run, "evaluate/loss") == [(2, 0.25)]
    assert mlflow_history(place, run, "final/final_accuracy") == [(2, 0.2)]
    tags = {key: value for key, value in run.data.tags.items() if key.startswith("fedra.")}
    assert tags == {
        "fedra.run": "digits-fedra",
        "fedra.rule": "fedra",
        "fedra.platform": "simulation",
        "fedra.final.status": "done",
    }
    assert [path.name for path in place.iterdir()] == ["mlflow.db"]


def test_the_latest_messages_are_a_tag(folder):
    rounds = [record(1, warnings=["first"]), record(2, note="too few", warnings=["second"]), record(3)]
    tracked(MLflow(folder=folder), info(), rounds, {})
    (run,) = mlflow_runs(folder)
    assert run.data.tags["fedra.train/messages"] == "round 2:\ntoo few\nsecond"


def test_the_experiment_can_be_named(folder):
    tracked(MLflow(folder=folder, experiment="mine"), info(), measured(1), {})
    assert len(mlflow_runs(folder, "mine")) == 1


def test_a_resumed_run_is_the_same_run(folder):
    tracked(MLflow(folder=folder), info("other"), measured(7), {"a": 1.0})
    tracked(MLflow(folder=folder), info("it's me"), measured(1, 2), {})
    assert [run.info.status for run in mlflow_runs(folder)] == ["FINISHED", "KILLED"]
    changed = {"seed": 3, "rule_params": {"gamma": 0.9}}
    resumed = info("it's me", rounds_done=2, settings=changed)
    tracked(MLflow(folder=folder), resumed, measured(3), {"final_accuracy": 0.3})
    other, run = mlflow_runs(folder)
    assert other.info.run_name == "other"
    assert run.info.run_name == "it's me"
    assert run.info.status == "FINISHED"
    assert mlflow_history(folder, run, "train/accuracy") == [(1, 0.1), (2, 0.2), (3, 0.3)]


def test_a_resumed_run_that_was_not_tracked_before_is_tracked_from_there(folder):
    tracked(MLflow(folder=folder), info(rounds_done=4), measured(5), {})
    (run,) = mlflow_runs(folder)
    assert run.data.params["rule"] == "fedra"
    assert mlflow_history(folder, run, "train/accuracy") == [(5, 0.5)]


def test_a_run_begun_again_is_another_run(folder):
    tracker = MLflow(folder=folder)
    for cycle in range(3):
        tracked(tracker, info(), measured(1, offset=cycle), {})
    runs = mlflow_runs(folder)
    values = sorted(mlflow_history(folder, run, "train/accuracy")[0][1] for run in runs)
    assert values == [0.1, 1.1, 2.1]


def test_hostile_names_and_texts_are_taken(folder):
    metrics = dict.fromkeys(HOSTILE, 1.0)
    settings = {text: text for text in HOSTILE}
    rounds = [record(1, note=HOSTILE[1], warnings=HOSTILE * 10, metrics=metrics)]
    for text in HOSTILE:
        run = info(text, rule=text, settings=settings)
        tracked(MLflow(folder=folder), run, rounds, {text: text, "x": 1.0})
        tracked(MLflow(folder=folder), info(text, rounds_done=1), measured(2), {})
    runs = mlflow_runs(folder)
    assert len(runs) == len(HOSTILE)
    for run in runs:
        assert len([name for name in run.data.metrics if name.startswith("train/")]) == 5 + len(HOSTILE) + 1
        assert len(run.data.params) == 4 + len(HOSTILE)
        assert all(len(value) < 8000 for value in run.data.tags.values())


def test_many_settings_and_numbers_are_more_than_one_call(folder):
    run = info(settings={f"setting{number}": number for number in range(500)})
    metrics = {f"metric{number}": float(number) for number in range(300)}
    tracked(MLflow(folder=folder), run, [record(number, metrics=metrics) for number in range(1, 8)], {})
    (run,) = mlflow_runs(folder)
    assert len(run.data.params) == 200
    assert len(run.data.metrics) == 200 + 5
    assert mlflow_history(folder, run, "train/metric199") == [(number, 199.0) for number in range(1, 8)]


def test_numbers_wait_for_a_store_that_is_locked(folder, monkeypatch):
    from sqlalchemy.exc import OperationalError

    monkeypatch.setattr(module, "_PAUSE", 0.0)
    tracker = MLflow(folder=folder)
    tracker.start(info())
    locking = tracker._session._client.log_batch

    def locked(*arguments, **named):
        raise OperationalError("INSERT", {}, sqlite3.OperationalError("database is locked"))

    monkeypatch.setattr(tracker._session._client, "log_batch", locked)
    with pytest.raises(OperationalError, match="locked"):
        tracker.round(*measured(1))
    monkeypatch.setattr(tracker._session._client, "log_batch", locking)
    tracker.round(*measured(2))
    tracker.end(info(), {})
    (run,) = mlflow_runs(folder)
    assert mlflow_history(folder, run, "train/accuracy") == [(1, 0.1), (2, 0.2)]


def test_a_slow_round_is_in_the_store_before_the_next(folder, monkeypatch):
    monkeypatch.setattr(module, "_PAUSE", 0.0)
    tracker = MLflow(folder=folder)
    tracker.start(info())
    for number in (1, 2):
        tracker.round(*measured(number))
        (run,) = mlflow_runs(folder)
        assert len(mlflow_history(folder, run, "train/accuracy")) == number
    tracker.end(info(), {})


def test_what_waits_is_bounded(folder, monkeypatch):
    monkeypatch.setattr(module, "_MOST_WAITING", 12)
    monkeypatch.setattr(module, "_PAUSE", 1e9)
    tracker = MLflow(folder=folder)
    tracker.start(info())
    for taken in measured(1, 2, 3, 4, 5):
        tracker.round(taken)
    assert len(tracker._session._waiting) == 12
    tracker.end(info(), {})
    (run,) = mlflow_runs(folder)
    # The first round did not wait.
    assert mlflow_history(folder, run, "train/accuracy") == [(1, 0.1), (4, 0.4), (5, 0.5)]


def test_a_store_that_somebody_else_made_meanwhile_stays(tmp_path):
    store = tmp_path / "mlflow.db"

    def write(fresh):
        store.write_text("theirs")
        fresh.write_text("ours")

    write_new(store, write)
    assert store.read_text() == "theirs"
    assert [path.name for path in tmp_path.iterdir()] == ["mlflow.db"]


def test_a_store_that_is_not_made_to_the_end_is_not_there(tmp_path):
    def write(fresh):
        fresh.write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_new(tmp_path / "mlflow.db", write)
    assert not list(tmp_path.iterdir())


def test_the_store_is_no_link(tmp_path):
    (tmp_path / "mlflow.db").symlink_to(tmp_path / "elsewhere.db")
    with pytest.raises(OSError, match="is a link to"):
        MLflow(folder=tmp_path).start(info())
    assert not (tmp_path / "elsewhere.db").exists()


def test_a_folder_that_an_address_cannot_hold_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="give another folder"):
        MLflow(folder=tmp_path / "what?").start(info())


def test_nothing_is_reported_to_mlflows_makers(folder, monkeypatch):
    monkeypatch.delenv("MLFLOW_DISABLE_TELEMETRY", raising=False)
    tracked(MLflow(folder=folder), info(), measured(1), {})
    assert os.environ["MLFLOW_DISABLE_TELEMETRY"] == "true"


@pytest.mark.parametrize("experiment", ["", " ", None, 5])
def test_an_experiment_has_a_name(experiment):
    with pytest.raises(TypeError, match="give the name of an MLflow experiment"):
        MLflow(experiment=experiment)
