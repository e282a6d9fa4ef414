"""Protocols as values, and which runs have the settings of one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fedra.paper import Reproduction, read_protocols

PROTOCOLS = read_protocols()
QUICK = PROTOCOLS.named("quick")


def test_a_partitions_settings_win_over_the_data_sets() -> None:
    protocol = replace(QUICK, datasets={"x": {"rounds": 1, "lr": 2.0, "non-iid": {"rounds": 3}}})
    assert protocol.settings("x", "iid") == {"rounds": 1, "lr": 2.0}
    assert protocol.settings("x", "non-iid") == {"rounds": 3, "lr": 2.0}


@pytest.mark.parametrize("protocol", PROTOCOLS.by_name.values(), ids=lambda protocol: protocol.name)
def test_all_that_fedra_paper_runs_fits_its_protocol(protocol: Any) -> None:
    for dataset in protocol.datasets:
        grid = Reproduction(protocol=protocol.name, datasets=(dataset,)).grid()
        assert grid is not None
        for config in grid.runs.values():
            plain = {key: value for key, value in config.to_dict().items() if value is not None}
            assert protocol.fits(plain)
            assert protocol.fits(config.to_dict())


MNIST = {"dataset": "mnist", "partition": "iid", "lr": 1e-3, "max_quantity": 512, "rounds": 250}


@pytest.mark.parametrize(
    ("changed", "fits", "fits_longer"),
    [
        ({}, True, True),
        ({"seed": 7, "rule": "median", "attack": "lie", "alpha_q": 3.0, "setting": "fixed"}, True, True),
        ({"eval_every": 1, "checkpoint_every": 5, "threads": 2}, True, True),
        ({"rounds": 600}, False, True),
        ({"rounds": 249}, False, False),
        ({"lr": 2e-3}, False, False),
        ({"max_quantity": None}, False, False),
        ({"num_sampled": 40}, False, False),
        ({"malicious_ratio": 0.2}, False, False),
        ({"optimizer": "sgd"}, False, False),
        ({"local_epochs": 1}, False, False),
        ({"model": "logistic"}, False, False),
        ({"quantity_statistics": "round"}, False, False),
        ({"partition": "non-iid"}, False, False),
        ({"dataset": "fashion-mnist"}, False, False),
        ({"unheard_of": 1}, False, False),
    ],
)
def test_a_run_that_is_set_up_otherwise_does_not_fit(changed: dict[str, Any], fits: bool, fits_longer: bool) -> None:
    assert PROTOCOLS.fits({**MNIST, **changed}) is fits
    assert PROTOCOLS.fits({**MNIST, **changed}, longer=True) is fits_longer


def test_defaults_count_as_stated() -> None:
    full = {"dataset": "mnist", "rounds": 10_000}
    assert PROTOCOLS.named("full").fits(full)
    assert PROTOCOLS.named("full").fits({**full, "lr": 1e-4, "model_params": {}})
    assert not PROTOCOLS.named("full").fits({**full, "lr": 1e-3})
