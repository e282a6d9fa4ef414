"""Who holds each sample, from data and from files that anyone may have written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedra.data import Owners, is_owner_file, owner_file_digest, partition_by_owner, pinned_owner_file, read_owner_file

NAMES = st.text(st.characters(codec="utf-8", exclude_characters=",\n\r"), min_size=1, max_size=12)


def written(folder: Path, text: str | bytes, name: str = "clients.csv") -> str:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


@given(st.lists(NAMES, min_size=1, max_size=60))
def test_every_sample_keeps_its_owner(held_by: list[str]) -> None:
    owners = Owners.of(held_by)
    # NumPy ends texts at trailing null characters.
    assert [owners.names[client] for client in owners.clients] == [name.rstrip("\0") for name in held_by]
    assert len(set(owners.names)) == len(owners.names)


def test_clients_that_are_numbers_are_in_the_order_of_numbers() -> None:
    assert Owners.of(["10", "2", "2", "0"]).names == ("0", "2", "10")
    assert Owners.of(["10", "2", "b"]).names == ("10", "2", "b")


@pytest.mark.parametrize(
    ("clients", "names", "message"),
    [
        ([0, 1], ("a",), "from 0 to 0"),
        ([0, -1], ("a",), "from 0 to 0"),
        ([0, 0], ("a", "b"), "'b' holds no sample"),
        ([0, 1], ("a", "a"), "one name"),
        ([], (), "0 samples"),
    ],
)
def test_owners_that_cannot_be(clients: list[int], names: tuple[str, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Owners(clients=np.array(clients, dtype=np.int64), names=names)


def test_other_types_are_no_owners() -> None:
    with pytest.raises(ValueError, match="int64"):
        Owners(clients=np.zeros(3), names=("a",))  # type: ignore[arg-type]


@given(st.lists(st.integers(0, 5), min_size=1, max_size=80), st.integers(1, 10), st.integers(0, 9))
def test_a_partition_by_owner_gives_each_its_own(held_by: list[int], cap: int, seed: int) -> None:
    owners = Owners.of([str(number) for number in held_by])
    whole = partition_by_owner(owners.clients, seed=seed)
    assert sorted(whole.order.tolist()) == list(range(len(held_by)))
    capped = partition_by_owner(owners.clients, max_quantity=cap, seed=seed)
    for client, name in enumerate(owners.names):
        own = {place for place, number in enumerate(held_by) if str(number) == name}
        assert set(whole.indices(client).tolist()) == own
        assert set(capped.indices(client).tolist()) <= own
        assert len(capped.indices(client)) == min(cap, len(own))


def test_a_file_is_pinned_to_what_it_says(tmp_path: Path) -> None:
    path = written(tmp_path, "# by ward\nnorth\nsouth\n\nnorth\n")
    pinned = pinned_owner_file(path)
    assert is_owner_file(path)
    assert is_owner_file(pinned)
    assert pinned_owner_file(pinned) == pinned
    assert pinned == f"{path}#{owner_file_digest(pinned)}"
    owners = read_owner_file(pinned, 3)
    assert owners.names == ("north", "south")
    assert owners.clients.tolist() == [0, 1, 0]
    written(tmp_path, "north\r\nsouth\r\nnorth")
    assert read_owner_file(pinned, 3).clients.tolist() == [0, 1, 0]
    written(tmp_path, "north\nsouth\nsouth\n")
    with pytest.raises(ValueError, match="does not say what it said"):
        read_owner_file(pinned, 3)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "has no clients"),
        (b"# nothing\n\n", "has no clients"),
        (b"\xff\xfe\x00", "is no text"),
        (b"a\nnan\n", "'nan' for sample 2"),
        (b"a\nNone\n", "'None' for sample 2"),
        (b"0,a\n1,b\n", "without commas"),
        (b"a\n" + b"x" * 101 + b"\n", "for sample 2"),
        (b"a\n\x1b[31mred\n", "for sample 2"),
        ("a\nb\u2028c\n".encode(), "for sample 2"),
    ],
)
def test_a_file_that_does_not_say_it(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        pinned_owner_file(written(tmp_path, content))
    assert str(caught.value).isprintable()


def test_files_that_are_missing_or_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="there is no file"):
        pinned_owner_file(str(tmp_path / "none.csv"))
    monkeypatch.setattr("fedra.data.owners._LARGEST_FILE", 10)
    with pytest.raises(ValueError, match="more than 10 bytes"):
        pinned_owner_file(written(tmp_path, "north\n" * 3))


def test_a_file_of_another_length(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="clients of 2 samples, but there are 3 training samples"):
        read_owner_file(written(tmp_path, "a\nb\n"), 3)


@given(st.binary(max_size=60))
def test_whatever_a_file_holds_it_is_owners_or_one_error(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = written(tmp_path_factory.mktemp("owners"), data, "x.txt")
    problem = ""
    try:
        pinned = pinned_owner_file(path)
    except ValueError as error:
        problem = str(error)
    if problem:
        assert "x.txt" in problem
        return
    lines = [line for line in data.decode("utf-8-sig").split("\n") if line.strip() and not line.startswith("#")]
    assert len(read_owner_file(pinned, len(lines)).clients) == len(lines)
