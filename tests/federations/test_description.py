"""What there is to say of a federation, and both drawings of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedra.data import load_dataset
from fedra.federations import FederationDescription, describe, description_text, write_picture
from fedra.federations.description import possible_claims
from fedra.simulation import SimulationConfig
from fedra.simulation.federation import make_federation


def described(title: str = "", **given_: Any) -> FederationDescription:
    return describe(SimulationConfig(rule="fedavg", **given_), load_dataset("digits"), title=title)


def small(quantities: list[int], names: tuple[str, ...], malicious: list[bool]) -> FederationDescription:
    held = np.array(quantities, dtype=np.int64)
    return FederationDescription(
        title="made up",
        dataset="digits",
        partition="iid",
        class_names=("a", "b"),
        names=names,
        quantities=held,
        labels=np.stack([held, np.zeros_like(held)], axis=1),
        malicious=np.array(malicious),
        num_samples=int(held.sum()),
        num_sampled=len(quantities),
        assumed_ratio=0.1,
        claims=possible_claims(held, len(quantities)),
    )


def test_it_is_the_federation_of_a_run() -> None:
    settings: dict[str, Any] = {"partition": "non-iid", "malicious": "largest 3", "attack": "lie"}
    found = described(**settings)
    made = make_federation(SimulationConfig(rule="fedavg", **settings), load_dataset("digits"))
    np.testing.assert_array_equal(found.quantities, made.partition.quantities)
    np.testing.assert_array_equal(found.malicious, made.malicious)
    np.testing.assert_array_equal(found.labels.sum(axis=1), found.quantities)
    labels = load_dataset("digits").train_labels
    for client in (0, 50, 139):
        held = np.bincount(labels[made.partition.indices(client)], minlength=10)
        np.testing.assert_array_equal(found.labels[client], held)
    assert found.title == "digits"


def test_the_parts_of_the_largest() -> None:
    found = small([60, 20, 10, 5, 5], tuple("abcde"), [False] * 5)
    assert found.top_share(0.01) == (1, 0.6)
    assert found.top_share(0.4) == (2, 0.8)
    assert found.malicious_share == 0.0


def test_what_a_lie_weighs() -> None:
    claims = possible_claims(np.array([10, 10, 40]), 3)
    assert [claim.quantity for claim in claims] == [10, 40, 193, 40]
    assert claims[0].share == pytest.approx(10 / 50)
    assert claims[3].share == pytest.approx(0.5)
    assert possible_claims(np.array([5]), 1)[1].share == 1.0


def test_what_cannot_be_is_an_error() -> None:
    with pytest.raises(ValueError, match="only 3 clients"):
        described(quantities="5,5,5")
    with pytest.raises(ValueError, match="add up to"):
        described(quantities="1400,50", num_sampled=2)


@pytest.mark.parametrize("width", [40, 60, 80, 120])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"quantities": "420,310,190", "num_sampled": 3, "malicious": "largest 1"},
        {"partition": "non-iid", "malicious_ratio": 0.0},
    ],
)
def test_no_line_of_the_drawing_is_wider_than_the_terminal(width: int, settings: dict[str, Any]) -> None:
    found = described(**settings)
    text = description_text(found, width=width)
    assert max(map(len, text.splitlines())) <= width
    words = " ".join(text.split())
    assert f"{found.num_clients:,} clients hold" in words
    for part in ("largest 1 %", "largest 10 %", "what one liar could claim", "half of all weight in a round"):
        assert part in words


def test_clients_are_drawn_with_their_names_and_labels() -> None:
    text = description_text(small([8, 4], ("north", "south"), [True, False]), width=60)
    assert "!north ####" in text
    assert any(line.split() == ["south", "100", "."] for line in text.splitlines())


@given(
    st.lists(st.integers(1, 10**9), min_size=1, max_size=40), st.integers(0, 130), st.text(max_size=30), st.booleans()
)
def test_any_federation_can_be_drawn(quantities: list[int], width: int, name: str, bad: bool) -> None:
    found = small(quantities, tuple(f"{name}{number}" for number in range(len(quantities))), [bad] * len(quantities))
    lines = description_text(found, width=width).split("\n")
    assert max(map(len, lines)) <= max(40, width)
    assert all(line.isprintable() for line in lines)


def test_it_is_plain_values() -> None:
    found = json.loads(json.dumps(described(malicious=[2]).as_dict()))
    assert found["num_clients"] == len(found["clients"]) == 140
    assert found["clients"][2]["malicious"]
    assert sum(client["samples"] for client in found["clients"]) == found["samples"] == 1438
    assert sum(sum(client["labels"]) for client in found["clients"]) == 1438
    assert found["top_shares"]["0.1"] > found["top_shares"]["0.01"] > 0


@pytest.mark.parametrize(("name", "start"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("A.PDF", b"%PDF")])
def test_pictures_have_the_same_bytes_again(tmp_path: Path, name: str, start: bytes) -> None:
    found = described("$made$ \x1bup", malicious="largest 2")
    write_picture(found, tmp_path / name)
    first = (tmp_path / name).read_bytes()
    assert first.startswith(start)
    write_picture(found, tmp_path / name)
    assert (tmp_path / name).read_bytes() == first


def test_few_clients_are_drawn_as_bars(tmp_path: Path) -> None:
    write_picture(small([5000, 3], ("a", "b"), [True, False]), tmp_path / "few.svg")
    assert (tmp_path / "few.svg").stat().st_size > 1000


def test_pictures_that_cannot_be(tmp_path: Path) -> None:
    found = small([5], ("a",), [False])
    with pytest.raises(ValueError, match=r"\.png, \.svg or \.pdf"):
        write_picture(found, tmp_path / "a.jpg")
    with pytest.raises(ValueError, match="there is no folder"):
        write_picture(found, tmp_path / "none" / "a.png")
