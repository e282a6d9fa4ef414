from __future__ import annotations

import dataclasses
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.simulation.outcomes import outcome

import fedra
from fedra.data import Dataset, load_dataset
from fedra.simulation import Simulation, SimulationConfig
from fedra.simulation.run_records import round_frame
from fedra.simulation.run_result import FIGURE_CHECKS, figure_problem, make_result, read_result, summary


@cache
def digits() -> Dataset:
    return load_dataset("digits")


@cache
def made() -> dict[str, Any]:
    """The figures of a run of two rounds."""
    simulation = Simulation(SimulationConfig(rounds=2, num_sampled=10, attack="lie"), digits())
    state, outcomes = simulation.initial_state(), []
    for _ in range(2):
        state, outcome = simulation.step(state)
        outcomes.append(outcome)
    return make_result(simulation, state, round_frame(outcomes), seconds=0.5)


def test_the_summary_of_a_run() -> None:
    frame = round_frame(
        [
            outcome(0, [False, True, True, False], accuracy=70.0, num_malicious=4),
            outcome(1, [False, False, True, True], num_malicious=None),
            outcome(2, [True, False, True, True], accuracy=60.0, note="nothing came of it"),
        ]
    )
    assert summary(frame) == {
        "final_accuracy": 60.0,
        "best_accuracy": 70.0,
        "best_round": 0,
        "attack_success": None,
        "auc": None,
        "class_accuracy": None,
        "worst_class_accuracy": None,
        "filtering_precision": pytest.approx(4 / 5),
        "filtering_recall": pytest.approx(4 / 6),
        "mean_abs_error_malicious": pytest.approx(1.5),
        "rounds_without_update": 1,
    }


def test_the_success_of_an_attack_is_the_last_that_was_measured() -> None:
    measured = [(0, 10.0), (1, 35.5), (2, None)]
    frame = round_frame(
        [dataclasses.replace(outcome(number, [True] * 4), attack_success=value) for number, value in measured]
    )
    assert summary(frame)["attack_success"] == 35.5


def test_measures_are_the_last_that_were_taken() -> None:
    first = dataclasses.replace(outcome(0, [True] * 4), auc=0.5, class_accuracy=(1.0, None))
    second = dataclasses.replace(outcome(1, [True] * 4), auc=0.75, class_accuracy=(80.0, 12.345, None))
    found = summary(round_frame([first, second, outcome(2, [True] * 4)]))
    assert (found["auc"], found["class_accuracy"], found["worst_class_accuracy"]) == (0.75, "80.00,12.35,-", 12.35)


@pytest.mark.parametrize(("name", "value"), [("auc", 1.5), ("class_accuracy", "a"), ("worst_class_accuracy", -1)])
def test_senseless_measures_are_refused(tmp_path: Path, name: str, value: object) -> None:
    file = tmp_path / "result.json"
    file.write_text(json.dumps({**made(), name: value}), encoding="utf-8")
    with pytest.raises(ValueError, match=f"{name} is"):
        read_result(file)


def test_a_result_of_an_earlier_version_has_no_success_and_a_senseless_one_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    figures = {key: value for key, value in made().items() if key != "attack_success"}
    file.write_text(json.dumps(figures), encoding="utf-8")
    assert read_result(file) == figures
    file.write_text(json.dumps({**figures, "attack_success": 101}), encoding="utf-8")
    with pytest.raises(ValueError, match="attack_success is 101"):
        read_result(file)


def test_what_cannot_be_said_is_none() -> None:
    frame = round_frame([outcome(0, [True] * 4, num_malicious=None)])
    found = summary(frame.assign(num_malicious=0))
    for key in (
        "final_accuracy",
        "best_accuracy",
        "filtering_precision",
        "filtering_recall",
        "mean_abs_error_malicious",
    ):
        assert found[key] is None, key


def test_a_result_has_all_figures_and_what_made_them() -> None:
    result = made()
    assert (result["rounds"], result["seconds"], result["rounds_per_second"]) == (2, 0.5, 4.0)
    assert (result["num_clients"], result["num_malicious_clients"], result["num_parameters"]) == (140, 14, 650)
    assert result["versions"]["fedra"] == fedra.__version__
    assert SimulationConfig.from_dict(result["config"]).attack == "lie"
    assert figure_problem(result) == ""
    assert set(FIGURE_CHECKS) <= set(result)


def test_a_result_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    assert read_result(file) is None
    file.write_text(json.dumps(made()), encoding="utf-8")
    assert read_result(file) == made()


@pytest.mark.parametrize(
    ("figure", "value"),
    [
        ("final_accuracy", 101),
        ("filtering_recall", -0.1),
        ("rounds", 0),
        ("seconds", float("nan")),
        ("num_clients", True),
        ("weights_sha256", "0" * 63),
        ("seed", "zero"),
    ],
)
def test_a_figure_out_of_its_range_is_an_error_that_names_it(tmp_path: Path, figure: str, value: Any) -> None:
    file = tmp_path / "result.json"
    file.write_text(json.dumps({**made(), figure: value}), encoding="utf-8")
    with pytest.raises(ValueError, match=rf"result\.json cannot be read \({figure} is .*\); put it back"):
        read_result(file)
    file.write_text(json.dumps({key: kept for key, kept in made().items() if key != figure}), encoding="utf-8")
    with pytest.raises(ValueError, match=f"{figure} is missing"):
        read_result(file)
