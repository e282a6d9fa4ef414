"""What all trackers share: places, pickling, names, bounds."""

import copy
import logging
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from tests.trackers.samples import (
    HOSTILE,
    event_numbers,
    info,
    measured,
    mlflow_history,
    mlflow_runs,
    record,
    tracked,
    wandb_records,
    wandb_rows,
)

from fedra.server import RoundRecord
from fedra.trackers import TRACKERS, TensorBoard, make_tracker
from fedra.trackers.base import MOST_METRICS, run_name, settings_of, tag_of, text_lines

TRACK = """
import logging, sys
from fedra.server.observers import Observers
from fedra.trackers import make_tracker
from tests.trackers.samples import info, measured, tracked

class Raised(logging.Handler):
    def emit(self, record):
        sys.exit(record.getMessage())

logging.getLogger("fedra").addHandler(Raised())
name, folder, run = sys.argv[1:]
tracked(Observers([make_tracker(name, folder=folder)]), info(run), measured(*range(1, 41), offset=int(run)), {"a": 1.0})
"""


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("name", TRACKERS)
def test_files_go_where_they_are_told(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tracked(make_tracker(name), info(folder=str(tmp_path / "run")), measured(1), {})
    assert files_below(tmp_path / "run" / name)
    tracked(make_tracker(name, folder="given"), info(folder=str(tmp_path / "other")), measured(1), {})
    assert files_below(tmp_path / "given")
    assert not (tmp_path / "other").exists()
    tracked(make_tracker(name), info(), measured(1), {})
    assert files_below(tmp_path / "runs" / "tracking" / name)
    assert {path.name for path in tmp_path.iterdir()} == {"run", "given", "runs"}


@pytest.mark.parametrize("name", TRACKERS)
def test_a_tracker_can_be_sent_before_its_start_and_while_it_is_open(name, tmp_path):
    tracker = make_tracker(name, folder=str(tmp_path / "one"))
    sent = pickle.loads(pickle.dumps(tracker))
    assert repr(sent) == repr(tracker)
    tracker.start(info())
    tracker.folder = str(tmp_path / "two")
    for other in (pickle.loads(pickle.dumps(tracker)), copy.deepcopy(tracker)):
        other.round(record(1))  # not started here, so there is nothing to write to
        tracked(other, info("another"), measured(1), {})
    tracker.end(info(), {})
    assert files_below(tmp_path / "two")


@pytest.mark.parametrize("name", TRACKERS)
def test_rounds_and_ends_without_a_start_are_nothing(name, tmp_path):
    tracker = make_tracker(name, folder=tmp_path)
    tracker.round(record(1))
    tracker.end(info(), {})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", TRACKERS)
def test_a_second_start_closes_the_first(name, tmp_path):
    tracker = make_tracker(name, folder=tmp_path)
    tracker.start(info("one"))
    first = tracker._session
    closed = []
    close = first.close
    first.close = lambda: closed.append(close())
    tracker.start(info("two"))
    assert len(closed) == 1
    tracker.end(info("two"), {})
    assert tracker._session is None


@pytest.mark.parametrize("name", TRACKERS)
def test_several_runs_write_into_one_folder_at_the_same_time(name, tmp_path):
    root = Path(__file__).parent.parent.parent
    command = [sys.executable, "-c", TRACK, name, str(tmp_path)]
    runs = [subprocess.Popen([*command, str(number)], cwd=root, stderr=subprocess.PIPE) for number in range(3)]
    assert [run.communicate()[1].decode() for run in runs if run.wait()] == []
    for number in range(3):
        values = [(step, round(step / 10 + number, 6)) for step in range(1, 41)]
        if name == "tensorboard":
            assert event_numbers(tmp_path / str(number))["train/accuracy"] == values
        elif name == "mlflow":
            (run,) = [run for run in mlflow_runs(tmp_path) if run.info.run_name == str(number)]
            found = mlflow_history(tmp_path, run, "train/accuracy")
            assert [(step, round(value, 6)) for step, value in found] == values
        else:
            rows = [wandb_rows(records) for records in wandb_records(tmp_path)]
            assert values in [[(row["round"], round(row["train/accuracy"], 6)) for row in part] for part in rows]


def test_metrics_beyond_the_bound_are_left_out_and_reported_once(tmp_path, caplog):
    tracker = TensorBoard(folder=tmp_path)
    flood = [record(n, metrics={f"m{n}.{i}": 1.0 for i in range(150)}) for n in range(1, 5)]
    late = record(5, phase="evaluate", metrics={"new": 1.0, "m1.0": 2.0})
    with caplog.at_level(logging.WARNING, "fedra"):
        tracked(tracker, info(), [*flood, late], {})
    numbers = event_numbers(tmp_path / "digits-fedra")
    assert len([tag for tag in numbers if tag.startswith("train/m")]) == MOST_METRICS
    assert "evaluate/new" not in numbers
    assert numbers["evaluate/m1.0"] == [(5, 2.0)]
    assert numbers["evaluate/kept"] == [(5, 2.0)]
    assert len(caplog.records) == 1
    assert f"{MOST_METRICS} metrics" in caplog.text


def test_the_bound_starts_anew_with_a_run(tmp_path):
    tracker = TensorBoard(folder=tmp_path)
    for run in ("one", "two"):
        tracked(tracker, info(run), [record(1, metrics={f"{run}{i}": 1.0 for i in range(150)})], {})
    assert "train/two149" in event_numbers(tmp_path / "two")


@pytest.mark.parametrize("name", ["accuracy", "val/loss", "class 3.recall", "top-5", "Genauigkeit_größe", "_x"])
def test_plain_names_stay(name):
    assert tag_of(name) == name


def test_other_names_become_plain_and_stay_apart():
    names = [*HOSTILE, "a?b", "a!b", "/a", "a/", "a//b", "a/../b", " a", "a" * 101, "a" * 102, ".", "a\n"]
    tags = [tag_of(name) for name in names]
    assert len(set(tags)) == len(names)
    assert all(tag_of(tag) == tag and len(tag) <= 110 for tag in tags if len(tag) <= 100)
    assert not any(set(tag) & set("/\\?!<>\x00\x1b\n'\"") for tag in tags)
    assert tags == [tag_of(name) for name in names]


def test_a_runs_name_is_one_file_name():
    names = [run_name(info(text)) for text in [*HOSTILE, "größe", "a b", "a_b", "a" * 61, ".hidden", "CON:"]]
    assert len(set(names)) == len(names)
    for name in names:
        assert len(name) <= 70
        assert name.isascii()
        assert Path(name).name == name
        assert not name.startswith(".")


def test_settings_are_flat_short_and_bounded():
    deep = {"a": {"b": {"c": {"d": {"e": 1}}}}}
    found = settings_of(info(settings={**deep, "rule": "another", "long": "x" * 10_000}))
    assert list(found)[:4] == ["run", "platform", "rule", "rounds"]
    assert found["rule"] == "fedra"
    assert found["a.b.c.d"] == "{'e': 1}"
    assert len(found["long"]) == 300
    assert len(settings_of(info(settings={str(i): i for i in range(1000)}))) == 200


def test_lines_are_clipped_and_counted():
    lines = text_lines([f"{number}\n{number}" for number in range(50)])
    assert lines[:2] == ["0 0", "1 1"]
    assert lines[-1] == "and 30 more"
    assert len(lines) == 21
    assert text_lines([]) == []


@pytest.mark.parametrize("folder", ["", 5, True, b"bytes"])
def test_a_folder_is_a_text_or_a_path(folder):
    with pytest.raises(TypeError, match="give the name of a folder"):
        TensorBoard(folder=folder)


def test_a_record_of_a_phase_of_another_name_is_taken(tmp_path):
    tracked(TensorBoard(folder=tmp_path), info(), [record(1, phase="../fit")], {})
    (tag,) = [tag for tag in event_numbers(tmp_path / "digits-fedra") if tag.endswith("/kept")]
    assert tag == f"{tag_of('../fit')}/kept"
    assert isinstance(record(1), RoundRecord)
