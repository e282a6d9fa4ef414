"""Data sets by name and by module:function."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fedra.data import (
    DATASETS,
    DatasetError,
    DatasetSpec,
    dataset_status,
    default_learning_rate,
    default_model,
    default_partition_seed,
    load_dataset,
)
from fedra.data.digits import load_digits
from fedra.simulation import SimulationConfig, simulate

OWN = """
import numpy as np
from fedra.data import Dataset, load_dataset

def load(data_dir, *, rows=8):
    inputs = np.zeros((rows, 3), np.float32)
    labels = np.arange(rows) % 2
    return Dataset(name=str(data_dir), train_inputs=inputs, train_labels=labels, test_inputs=inputs,
                   test_labels=labels, num_classes=2, class_names=("no", "yes"))

def wrong(data_dir):
    return {"rows": 8}

constant = 3
"""


@pytest.fixture
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module in the working directory, as a user has it."""
    (tmp_path / "own_loader_module.py").write_text(OWN)
    (tmp_path / "own_broken_module.py").write_text("import a_module_that_is_not_there")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", ["/nowhere"])
    monkeypatch.delitem(__import__("sys").modules, "own_loader_module", raising=False)
    return "own_loader_module"


def test_own_functions_get_the_data_directory_and_their_options(own_module: str, tmp_path: Path) -> None:
    dataset = load_dataset(f"{own_module}:load", tmp_path, rows=12)
    assert dataset.name == str(tmp_path)
    assert len(dataset.train_labels) == 12
    assert load_dataset(f"{own_module}:load").name == "None"


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("{}:wrong", "returned dict; it must return a fedra.data.Dataset"),
        ("{}:lod", "has no 'lod'; did you mean 'load'"),
        ("{}:constant", "is int; give a function"),
        ("no_such_module_here:load", "there is no module 'no_such_module_here'"),
        ("{}.deeper:load", "there is no module"),
        ("{}:", "not of the form module:name"),
        (":load", "not of the form module:name"),
        ("a b:load", "not of the form module:name"),
    ],
)
def test_mistakes_in_own_functions_are_told(own_module: str, spec: str, problem: str) -> None:
    with pytest.raises(DatasetError, match=problem):
        load_dataset(spec.format(own_module))


def test_a_missing_import_inside_an_own_module_is_not_hidden(own_module: str) -> None:
    with pytest.raises(ModuleNotFoundError, match="a_module_that_is_not_there"):
        load_dataset("own_broken_module:load")


@pytest.mark.parametrize(("name", "nearest"), [("minst", "mnist"), ("cifar-10", "cifar10"), ("digit", "digits")])
def test_unknown_names_are_told_with_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(DatasetError, match=f"unknown data set '{name}'; did you mean .*'{nearest}'") as caught:
        load_dataset(name)
    assert all(valid in str(caught.value) for valid in DATASETS)


def test_unknown_options_are_told(own_module: str) -> None:
    with pytest.raises(DatasetError, match="mind has no option 'glov'; did you mean 'glove'"):
        load_dataset("mind", glov="x")
    with pytest.raises(DatasetError, match="digits has no option 'glove'"):
        load_dataset("digits", glove="x")
    with pytest.raises(DatasetError, match="has no option 'row'; did you mean 'rows'"):
        load_dataset(f"{own_module}:load", row=3)


def test_the_environment_names_the_data_directory(
    tmp_path: Path, write_idx: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_idx(tmp_path / "MNIST" / "raw")
    monkeypatch.setenv("FEDRA_DATA", str(tmp_path))
    assert load_dataset("mnist").name == "mnist"
    with pytest.raises(DatasetError, match="elsewhere"):
        load_dataset("mnist", tmp_path / "elsewhere")


def test_defaults_are_the_specs_and_those_of_any_other_data_set() -> None:
    assert (default_model("cifar10"), default_learning_rate("digits"), default_partition_seed("mnist", 3)) == (
        "cnn32",
        1e-2,
        9080,
    )
    for name in ("my_data:load", "no such name", ""):
        assert (default_model(name), default_learning_rate(name), default_partition_seed(name, 3)) == (None, 1e-3, 3)


def test_one_entry_makes_a_data_set_known_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = DatasetSpec(
        name="more-digits",
        label="More digits",
        summary="digits under another name",
        load=load_digits,
        not_downloaded="it is a test",
        model="logistic",
        learning_rate=0.25,
        partition_seed=161,
    )
    monkeypatch.setitem(DATASETS, spec.name, spec)
    config = SimulationConfig(dataset=spec.name, rounds=1)
    assert config.learning_rate == 0.25
    assert simulate(config).summary["num_clients"] == 140
    assert [status.state for status in dataset_status() if status.name == spec.name] == ["ready"]
