"""Settings from several places."""

from __future__ import annotations

from typing import Any

import pytest

from fedra.simulation import overridden


@pytest.mark.parametrize(
    ("farther", "nearer", "left"),
    [
        ({"malicious": "largest 1", "seed": 1}, {"num_malicious": 2}, {"seed": 1}),
        ({"num_malicious": 2}, {"malicious_ratio": 0.1}, {}),
        ({"malicious_ratio": 0.2}, {"malicious": [1]}, {}),
        ({"assumed_ratio": 0.2, "num_malicious": 1}, {"malicious": [1]}, {"assumed_ratio": 0.2}),
        ({"quantities": "equal", "num_clients": 3}, {"partition": "natural"}, {}),
        ({"quantities": "equal", "num_clients": 3}, {"partition": "who.csv"}, {}),
        (
            {"quantities": "equal", "num_clients": 3},
            {"partition": "non-iid"},
            {"quantities": "equal", "num_clients": 3},
        ),
        ({"partition": "natural", "client_key": "carrier"}, {"partition": "iid"}, {}),
        ({"partition": "natural", "client_key": "carrier"}, {"partition": "natural"}, {"client_key": "carrier"}),
        ({"partition": "natural", "client_key": "carrier"}, {"quantities": "equal"}, {}),
        ({"partition": "non-iid"}, {"quantities": "equal"}, {"partition": "non-iid"}),
        ({"num_clients": 9}, {"quantities": "3,4"}, {}),
        ({"num_clients": 9}, {"quantities": [3, 4]}, {}),
        ({"num_clients": 9}, {"quantities": "sizes.txt"}, {}),
        ({"num_clients": 9}, {"quantities": "zipf s=1"}, {"num_clients": 9}),
        ({"dataset": "mind", "dataset_params": {"a": 1}}, {"dataset": "digits"}, {}),
        ({"dataset": "mind", "dataset_params": {"a": 1}}, {"dataset": "mind"}, {"dataset_params": {"a": 1}}),
    ],
)
def test_the_nearer_place_wins_also_over_what_it_excludes(
    farther: dict[str, Any], nearer: dict[str, Any], left: dict[str, Any]
) -> None:
    assert overridden(farther, nearer) == {**left, **nearer}


def test_one_place_that_contradicts_itself_stays_so() -> None:
    both = {"partition": "natural", "quantities": "equal", "num_malicious": 1, "malicious": [1]}
    assert overridden({}, both) == both
    assert overridden({"num_malicious": 3}, {}) == {"num_malicious": 3}
