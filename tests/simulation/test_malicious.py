"""Which clients are malicious."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedra.data import Owners, partition_by_owner
from fedra.simulation import SimulationConfig
from fedra.simulation.holdings import Holdings
from fedra.simulation.malicious import malicious_clients, malicious_text


def holdings(*held_by: str, named: bool = True) -> Holdings:
    owners = Owners.of(list(held_by))
    return Holdings(partition=partition_by_owner(owners.clients, seed=0), names=owners.names if named else ())


def chosen(malicious: Any, held: Holdings) -> list[int]:
    config = SimulationConfig(rule="fedavg", malicious=malicious)
    return np.flatnonzero(malicious_clients(config, held)).tolist()


@pytest.mark.parametrize(
    ("given_", "text"),
    [
        ("largest 2", "largest 2"),
        (" the  largest 12 ", "largest 12"),
        ([3, 0], "3,0"),
        ("3, 0", "3,0"),
        (["UA", "B6"], "UA,B6"),
        (np.int64(4), None),
    ],
)
def test_who_is_malicious_has_one_form(given_: Any, text: str | None) -> None:
    if text is None:
        with pytest.raises(TypeError, match="a list of clients"):
            malicious_text(given_)
        return
    assert malicious_text(given_) == text
    assert malicious_text(text) == text


@pytest.mark.parametrize("wrong", [[], "", "a,,b", [-1], [1, 1], ["a,b"], ["a\nb"], "x" * 40_000])
def test_what_names_nobody(wrong: Any) -> None:
    with pytest.raises(ValueError, match="malicious"):
        malicious_text(wrong)


@pytest.mark.parametrize("wrong", [3, 1.5, True, [1.5], [None], {"a": 1}, [True]])
def test_what_is_no_list_of_clients(wrong: Any) -> None:
    with pytest.raises(TypeError, match="malicious"):
        malicious_text(wrong)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=8))
def test_whatever_is_given_is_a_text_or_an_error(value: Any) -> None:
    try:
        text = malicious_text(value)
    except (TypeError, ValueError):
        return
    assert malicious_text(text) == text


def test_the_largest_are_those_with_the_most_data() -> None:
    held = holdings(*"aabbbcdd")
    assert chosen("largest 1", held) == [1]
    assert chosen("largest 2", held) == [0, 1]
    assert chosen("largest 4", held) == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="only 4 clients"):
        chosen("largest 5", held)


def test_clients_by_name_and_by_number() -> None:
    held = holdings("UA", "B6", "AA", "UA")
    assert held.names == ("AA", "B6", "UA")
    assert chosen(["UA", "AA"], held) == [0, 2]
    assert chosen([1], held) == [1]
    assert chosen("2", holdings("a", "b", "c", named=False)) == [2]
    with pytest.raises(ValueError, match=r"client 'DL' is unknown; .*AA, B6, UA"):
        chosen(["DL"], held)
    with pytest.raises(ValueError, match="numbers from 0 to 2"):
        chosen([3], holdings("a", "b", "c", named=False))
    with pytest.raises(ValueError, match="names a client twice"):
        chosen(["AA", "0"], held)


def test_numbers_that_are_names_count_as_names() -> None:
    held = holdings("205", "101", "101")
    assert chosen([101], held) == [0]
    with pytest.raises(ValueError, match="client '1' is unknown"):
        chosen([1], held)


def test_one_way_of_saying_it() -> None:
    with pytest.raises(ValueError, match="give one of them"):
        SimulationConfig(malicious="largest 1", num_malicious=1)
