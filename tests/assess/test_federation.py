"""The description of a federation, and what rules are given of it."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedra.assess import Federation
from fedra.rules import FedRA, MultiKrum, make_rule


def test_what_is_not_given_is_filled_in() -> None:
    federation = Federation.of(num_clients=300)
    assert (federation.num_clients, federation.num_sampled, federation.num_malicious) == (300, 50, 30)
    assert set(federation.quantities) == {100.0}
    assert "no quantities were given" in federation.known
    silos = Federation.of([5, 6, 7, 8])
    assert (silos.num_sampled, silos.num_malicious, silos.everybody) == (4, 1, True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "give quantities, or num_clients"),
        ({"quantities": [5]}, "quantities of 1 client; give at least 3"),
        ({"quantities": []}, "quantities of 0 clients"),
        ({"quantities": [[1, 2], [3, 4]]}, "shape"),
        ({"quantities": [5, math.nan, 6]}, "nan for client 2"),
        ({"quantities": [5, -1, 6]}, "-1 for client 2"),
        ({"quantities": [5, 0.5, 6]}, "0.5 for client 2"),
        ({"quantities": [5, 6, math.inf]}, "inf for client 3"),
        ({"quantities": [5, 6, 1e300]}, "1e\\+300 for client 3"),
        ({"quantities": np.ones(1_000_001)}, "at most 1,000,000"),
        ({"quantities": [5, 6, 7], "num_clients": 4}, "leave one of them out"),
        ({"num_clients": 2}, "whole number from 3"),
        ({"num_clients": 10, "num_sampled": 11}, "give at most 10"),
        ({"num_clients": 10, "num_sampled": 2}, "num_sampled=2"),
        ({"num_clients": 10, "malicious_ratio": 0.5}, "not including, 0.5"),
        ({"num_clients": 10, "malicious_ratio": 0.45}, "is 5 of them; give less than half"),
        ({"num_clients": 10, "num_malicious": 5}, "less than half of the clients"),
        ({"num_clients": 10, "num_malicious": -1}, "num_malicious=-1"),
        ({"num_clients": 10, "num_malicious": 1, "malicious_ratio": 0.1}, "give one of them"),
        ({"num_clients": 10, "rounds": 0}, "rounds=0"),
    ],
)
def test_what_cannot_be_is_an_error(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Federation.of(**arguments)


@given(st.integers(5, 3000), st.data())
def test_rules_are_given_a_ratio_that_comes_to_the_stated_number(total: int, data: st.DataObject) -> None:
    liars = data.draw(st.integers(0, (total - 1) // 2))
    sampled = data.draw(st.integers(3, total))
    federation = Federation.of(np.ones(total), num_malicious=liars, num_sampled=sampled)
    wanted = math.ceil(Fraction(sampled * liars, total))
    for rule in (MultiKrum(), FedRA.as_printed()):
        told = federation.told(rule)
        assert told.expected_malicious(sampled) == wanted  # type: ignore[attr-defined]


def test_a_stated_ratio_is_handed_on_as_it_is() -> None:
    federation = Federation.of(num_clients=3025, malicious_ratio=0.1)
    assert federation.num_malicious == 303
    assert federation.told(make_rule("multi-krum")) == MultiKrum(malicious_ratio=0.1)
