from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from fedra.experiments.naming import resolved, run_name
from fedra.simulation import SimulationConfig

BASE = SimulationConfig(dataset="mnist", rule="fedra", attack="lie", alpha_q=10.0, seed=3)


def test_a_name_can_be_read() -> None:
    assert re.fullmatch(r"mnist-iid-dynamic-fedra-lie-q10-seed3-[0-9a-f]{10}", run_name(BASE))


@pytest.mark.parametrize(
    "change",
    [
        {"data_dir": "elsewhere"},
        {"checkpoint_every": 7},
        {"lr": 1e-4},
        {"rule_params": {"gamma": 0.1, "variance": "pooled-root", "drop_ties": True}},
        {"rule_params": {"prior": "number"}},
        {"attack_params": {"z": 1.5}},
    ],
)
def test_what_does_not_change_the_result_keeps_the_name(change: dict[str, Any]) -> None:
    assert run_name(replace(BASE, **change)) == run_name(BASE)


@pytest.mark.parametrize(
    "change",
    [
        {"rounds": 101},
        {"eval_every": 5},
        {"lr": 1e-3},
        {"rule_params": {"gamma": 0.5}},
        {"rule_params": {"variance": "pooled"}},
        {"rule_params": {"variance": "separate"}},
        {"rule_params": {"prior": "set"}},
        {"quantity_statistics": "round"},
        {"attack_params": {"z": "max"}},
        {"alpha_q": 5.0},
        {"alpha_q": None},
        {"partition_seed": 1},
        {"max_quantity": 512},
        {"model_params": {"dropout": 0.0}},
        {"threads": 2},
    ],
)
def test_what_changes_the_result_changes_the_name(change: dict[str, Any]) -> None:
    assert run_name(replace(BASE, **change)) != run_name(BASE)


def test_an_option_that_came_later_leaves_names_as_they_were() -> None:
    """Folders of earlier runs are found by their names."""
    assert "prior" not in resolved(BASE)["rule_params"]
    assert resolved(replace(BASE, rule_params={"prior": "set"}))["rule_params"]["prior"] == "set"


def test_own_code_makes_a_name_that_is_a_folder() -> None:
    config = SimulationConfig(dataset="tests.simulation.own:blobs", attack="tests.simulation.own:vandal")
    assert re.fullmatch(r"[A-Za-z0-9.-]+", run_name(config))
