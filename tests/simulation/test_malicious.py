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
    config = SimulationConfig(dataset="my_data:load", partition="natural", rule="fedavg", malicious=malicious)
    return np.flatnonzero(malicious_clients(config, held)).tolist()


@pytest.mark.parametrize(
    ("given_", "text"),
    [
        ("largest 2", "largest 2"),
        (" the  largest 12 ", "largest 12"),
        ([3, 0], "0,3"),
        ("3, 0", "0,3"),
        ([10, "9", "a"], "9,10,a"),
        (["UA", "B6"], "B6,UA"),
        ("Largest 2", "largest 2"),
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


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        "",
        "a,,b",
        [-1],
        [1, 1],
        ["a,b"],
        ["a\nb"],
        "x" * 40_000,
        "largest",
        "largest 0",
        "largest -1",
        ["largest 2"],
        "the largest two",
        [10**5000],
    ],
)
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


def test_clients_without_names_are_told_when_a_run_is_described() -> None:
    known: dict[str, Any] = {"rule": "fedavg", "num_clients": 3, "quantities": "equal", "num_sampled": 3}
    assert SimulationConfig(malicious=["02", 0], **known).malicious == "0,2"
    for wrong, message in (
        ([3], "numbers from 0 to 2"),
        (["UA"], "have no names, give numbers"),
        (["1", "01"], "'1' twice"),
        ("largest 4", "only 3 clients"),
    ):
        with pytest.raises(ValueError, match=message):
            SimulationConfig(malicious=wrong, **known)


def test_a_hundred_thousand_names_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match="malicious names 100,000 clients"):
        malicious_text(list(range(100_000)))
    held = holdings(*map(str, range(20_000)), named=True)
    assert len(chosen(list(range(5_000)), held)) == 5_000


def test_a_result_of_an_earlier_spelling_is_of_the_same_run() -> None:
    config = SimulationConfig(rule="fedavg", malicious=[1, 0])
    assert list(config.differences({**config.to_dict(), "malicious": "1,0"})) == []
    assert [name for name, *_ in config.differences({**config.to_dict(), "malicious": "1,2"})] == ["malicious"]


@pytest.mark.parametrize("other", [{"num_malicious": 1}, {"malicious": [1]}])
def test_a_ratio_beside_a_number_is_a_contradiction(other: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"malicious_ratio=0\.2 and .* give one of them, .*assumed_ratio=0\.2"):
        SimulationConfig(rule="fedavg", malicious_ratio=0.2, **other)
    config = SimulationConfig(rule="krum", malicious_ratio=0.1, **other)
    assert (config.told_ratio, config.make_rule(None).malicious_ratio) == (0.1, 0.1)  # type: ignore[attr-defined]
    config = SimulationConfig(rule="krum", assumed_ratio=0.2, **other)
    assert (config.told_ratio, config.make_rule(None).malicious_ratio) == (0.2, 0.2)  # type: ignore[attr-defined]
