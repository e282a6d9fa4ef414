from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fedra.attacks import ATTACKS, attack_parameters, make_attack


def test_every_registered_attack_is_made_by_its_name() -> None:
    for name, attack in ATTACKS.items():
        assert attack.name == name
        assert make_attack(name, **attack_parameters(name)) == attack()


def test_parameters_reach_the_attack() -> None:
    assert make_attack("lie", z="max").z == "max"
    assert make_attack("label-flip", mapping="next").mapping == "next"


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        (
            "lei",
            {},
            r"unknown attack 'lei'; did you mean 'lie'\? valid: none, label-flip, lie, .*adaptive; .*module:name",
        ),
        ("lie", {"zz": 1}, r"attack 'lie' has no parameter 'zz'; did you mean 'z'\? valid: z"),
        ("none", {"z": 1}, "attack 'none' has no parameter 'z'; valid: none"),
        ("tests.simulation.own:vandl", {}, "'tests.simulation.own' has no 'vandl'; did you mean 'vandal'"),
        ("tests.simulation.own:overwhelming", {"scl": 2}, "no parameter 'scl'; did you mean 'scale'"),
        ("no_such_module:attack", {}, "there is no module 'no_such_module'"),
        ("not a module:attack", {}, "is not of the form module:name"),
    ],
)
def test_wrong_names_are_told_with_the_nearest_valid_one(name: str, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        make_attack(name, **parameters)


def test_an_own_function_takes_its_parameters() -> None:
    class Shown:
        num_malicious = 2
        weights = np.zeros(3)

    small, large = (
        make_attack("tests.simulation.own:overwhelming", scale=scale)(Shown(), np.random.default_rng(0))  # type: ignore[arg-type]
        for scale in (1.0, 10.0)
    )
    np.testing.assert_allclose(large, 10 * small)
