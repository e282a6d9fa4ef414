"""Trackers by name."""

import subprocess
import sys

import pytest

from fedra.server import Observer
from fedra.trackers import TRACKERS, MLflow, TensorBoard, WandB, make_tracker, make_trackers, tracker_parameters


@pytest.mark.parametrize("name", TRACKERS)
def test_every_tracker_is_an_observer_of_keyword_only_parameters(name):
    tracker = make_tracker(name)
    assert type(tracker) is TRACKERS[name]
    assert isinstance(tracker, Observer)
    assert tracker.name == name
    assert TRACKERS[name].__doc__
    assert "folder" in tracker_parameters(name)
    with pytest.raises(TypeError):
        TRACKERS[name]("somewhere")


def test_a_text_names_a_tracker_and_its_parameters():
    assert make_tracker("mlflow folder=some/where experiment='my own'").experiment == "my own"
    assert make_tracker("mlflow folder=some/where").folder == "some/where"
    assert make_tracker("mlflow folder=one", folder="two").folder == "two"
    assert make_tracker("wandb", project="mine").project == "mine"


def test_the_trackers_of_a_command_line():
    found = make_trackers(["tensorboard", "mlflow folder=x", "mlflow folder=y"])
    assert [type(tracker) for tracker in found] == [TensorBoard, MLflow, MLflow]
    assert make_trackers([]) == []
    with pytest.raises(ValueError, match="tracker 'wandb' is given 2 times"):
        make_trackers(["wandb", "tensorboard", "wandb"])


def test_the_trackers_of_a_grid_share_a_folder_that_is_not_stated_otherwise():
    found = make_trackers(["tensorboard", "mlflow folder=x", "wandb project=mine"], root="runs/grid/tracking")
    assert [tracker.folder for tracker in found] == ["runs/grid/tracking/tensorboard", "x", "runs/grid/tracking/wandb"]
    (own,) = make_trackers(["fedra.server:Observer"], root="runs/grid/tracking")
    assert type(own) is Observer


def test_an_unknown_name_lists_the_valid_ones():
    with pytest.raises(ValueError, match="unknown tracker 'tensorbord'; did you mean 'tensorboard'") as caught:
        make_tracker("tensorbord")
    assert all(name in str(caught.value) for name in TRACKERS)


def test_an_unknown_parameter_lists_the_valid_ones():
    with pytest.raises(TypeError, match="'mlflow' has no parameter 'experimnt'; did you mean 'experiment'"):
        make_tracker("mlflow experimnt=x")
    with pytest.raises(TypeError, match="'tensorboard' has no parameter '_session'; valid: folder"):
        make_tracker("tensorboard", _session=1)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("", "has no name"),
        ("  ", "has no name"),
        ("mlflow 'half", "No closing quotation"),
        ("mlflow folder", "'folder' is not of the form NAME=VALUE"),
        ("mlflow =x", "'=x' is not of the form NAME=VALUE"),
    ],
)
def test_a_text_of_another_form_is_refused(spec, message):
    with pytest.raises(ValueError, match=message):
        make_tracker(spec)


@pytest.mark.parametrize("spec", [None, 5, ["mlflow"]])
def test_a_name_that_is_no_text_is_refused(spec):
    with pytest.raises(TypeError, match="give a name, for instance tensorboard"):
        make_tracker(spec)


def test_an_own_tracker_is_found_by_its_module_and_class(tmp_path, monkeypatch):
    (tmp_path / "trackers_of_mine.py").write_text(
        "from fedra.server import Observer\n"
        "class Mine(Observer):\n"
        "    def __init__(self, *, every=10, **others):\n"
        "        self.every = every\n"
        "class Other: ...\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert make_tracker("trackers_of_mine:Mine every=5").every == 5
    with pytest.raises(TypeError, match="has no parameter 'evry'; did you mean 'every'"):
        make_tracker("trackers_of_mine:Mine evry=5")
    with pytest.raises(ValueError, match=r"not a subclass of fedra\.server\.Observer"):
        make_tracker("trackers_of_mine:Other")


@pytest.mark.parametrize(("name", "made"), [("tensorboard", TensorBoard), ("mlflow", MLflow), ("wandb", WandB)])
def test_a_missing_library_is_named_with_the_command_that_installs_it(name, made, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ModuleNotFoundError, match=rf"pip install 'fedra\[{name}\]'"):
        make_tracker(name)
    with pytest.raises(ModuleNotFoundError, match=f"tracker '{name}' needs the library '{name}'"):
        made()


def test_importing_and_making_trackers_imports_no_library():
    code = "import sys; from fedra.trackers import *; [make_tracker(name) for name in TRACKERS]; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "fedra.trackers.mlflow" in loaded
    assert not {"tensorboard", "mlflow", "wandb", "torch", "flwr"} & set(loaded)
