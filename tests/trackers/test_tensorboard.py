"""TensorBoard's event files, read back by TensorBoard."""

import pytest
from tests.trackers.samples import HOSTILE, accumulated, event_numbers, event_texts, info, measured, record, tracked

from fedra.trackers import TensorBoard

SUMMARY = {"final_accuracy": 0.2, "status": "done", "none": None, "config": {"seed": 3}}


def test_a_run_is_read_back(tmp_path):
    rounds = [*measured(1, 2), record(2, phase="evaluate", clients=[], num_malicious=None, metrics={"loss": 0.25})]
    tracked(TensorBoard(), info(folder=str(tmp_path)), rounds, SUMMARY)
    assert event_numbers(tmp_path / "tensorboard" / "digits-fedra") == {
        "train/kept": [(1, 2.0), (2, 2.0)],
        "train/rejected": [(1, 1.0), (2, 1.0)],
        "train/skipped": [(1, 0.0), (2, 0.0)],
        "train/estimated_malicious": [(1, 1.0), (2, 1.0)],
        "train/warnings": [(1, 0.0), (2, 0.0)],
        "train/accuracy": [(1, 0.1), (2, 0.2)],
        "evaluate/kept": [(2, 0.0)],
        "evaluate/rejected": [(2, 0.0)],
        "evaluate/skipped": [(2, 0.0)],
        "evaluate/warnings": [(2, 0.0)],
        "evaluate/loss": [(2, 0.25)],
        "final/final_accuracy": [(2, 0.2)],
    }
    texts = event_texts(tmp_path / "tensorboard" / "digits-fedra")
    ((step, settings),) = texts["settings"]
    assert step == 0
    assert "    rule = fedra\n" in settings
    assert "    rule_params.gamma = 0.5" in settings
    assert texts["final"] == [(2, "    status = done")]


def test_the_time_of_a_round_is_the_records(tmp_path):
    tracked(TensorBoard(folder=tmp_path), info(), measured(1, 2), {})
    times = [event.wall_time for event in accumulated(tmp_path / "digits-fedra").Scalars("train/accuracy")]
    assert times == [1001.0, 1002.0]


def test_a_note_and_warnings_are_texts_of_their_round(tmp_path):
    tracked(TensorBoard(folder=tmp_path), info(), [record(1), record(2, note="too few", warnings=["look at 3"])], {})
    assert event_texts(tmp_path / "digits-fedra")["train/messages"] == [(2, "    too few\n    look at 3")]


def test_every_round_is_on_disk_before_the_next(tmp_path):
    tracker = TensorBoard(folder=tmp_path)
    tracker.start(info())
    tracker.round(*measured(1))
    assert event_numbers(tmp_path / "digits-fedra")["train/accuracy"] == [(1, 0.1)]
    tracker.end(info(), {})


@pytest.mark.parametrize("first", [0, 1], ids=["counted from 0", "counted from 1"])
def test_a_resumed_run_goes_on_in_its_folder_and_drops_what_is_done_again(tmp_path, first):
    tracker = TensorBoard()
    run = info(folder=str(tmp_path))
    tracker.start(run)
    for taken in measured(*range(first, first + 4)):
        tracker.round(taken)  # and is killed; the last checkpoint was after two rounds
    resumed = TensorBoard()
    again = measured(*range(first + 2, first + 5), offset=0.5)
    tracked(resumed, info(folder=str(tmp_path), rounds_done=2), again, {"final_accuracy": 1.0})
    numbers = event_numbers(tmp_path / "tensorboard" / "digits-fedra")
    expected = [(n, n / 10) for n in range(first, first + 2)] + [(n, n / 10 + 0.5) for n in range(first + 2, first + 5)]
    assert numbers["train/accuracy"] == [(step, round(value, 6)) for step, value in expected]
    assert numbers["final/final_accuracy"] == [(first + 4, 1.0)]
    assert len(event_texts(tmp_path / "tensorboard" / "digits-fedra")["settings"]) == 1


def test_a_run_begun_again_takes_the_place_of_the_earlier_one(tmp_path):
    tracker = TensorBoard(folder=tmp_path)
    for cycle in range(12):
        tracked(tracker, info(), measured(*range(1, 14 - cycle), offset=cycle), {})
    assert event_numbers(tmp_path / "digits-fedra")["train/accuracy"] == [(1, 11.1), (2, 11.2)]


def test_numbers_that_the_format_cannot_hold_are_left_out(tmp_path):
    metrics = {"nan": float("nan"), "inf": float("-inf"), "large": 1e300, "huge": 10**400, "text": "9", "flag": True}
    tracked(TensorBoard(folder=tmp_path), info(), [record(1, metrics={**metrics, "fine": 3.0e38})], {"x": float("nan")})
    numbers = event_numbers(tmp_path / "digits-fedra")
    assert "train/fine" in numbers
    assert not {f"train/{name}" for name in metrics} & set(numbers)
    assert "final/x" not in numbers


def test_hostile_texts_are_shown_as_code(tmp_path):
    from tensorboard.plugin_util import markdown_to_safe_html

    tracked(TensorBoard(folder=tmp_path), info(), [record(1, note=HOSTILE[0], warnings=HOSTILE)], {"x": HOSTILE[2]})
    texts = event_texts(tmp_path / "digits-fedra")
    for _, shown in [*texts["train/messages"], *texts["final"]]:
        assert len(shown) < 10_000
        assert not set("\x00\x1b\u202e") & set(shown)
        html = markdown_to_safe_html(shown)
        assert "elsewhere.example" in html
        assert "<img" not in html
        assert "<a " not in html
        assert "<script" not in html


def test_a_link_in_the_runs_folder_is_not_written_through(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "tensorboard").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="is a link to"):
        TensorBoard().start(info(folder=str(tmp_path / "run")))
    assert not list((tmp_path / "elsewhere").iterdir())
