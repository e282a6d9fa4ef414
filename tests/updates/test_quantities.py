from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fedra.updates.quantities import claims_of, read_quantities


def read(tmp_path: Path, name: str, text: str | bytes) -> dict[str, Any]:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_quantities(path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("q.csv", "client,quantity\na,10\nb,2.5\n"),
        ("q.csv", "a,10\nb,2.5"),
        ("q.csv", b'\xef\xbb\xbfclient,samples\r\n"a",10\r\nb, 2.5\r\n'),
        ("q.txt", "# samples\na 10\n\nb\t2.5\n"),
        ("q.json", '{"a": 10, "b": 2.5}'),
        ("q.json", '[{"client": "a", "quantity": 10}, {"client": "b", "quantity": 2.5}]'),
    ],
)
def test_every_form_says_the_same(name: str, text: str | bytes, tmp_path: Path) -> None:
    assert read(tmp_path, name, text) == {"a": 10, "b": 2.5}


def test_a_name_may_hold_spaces(tmp_path: Path) -> None:
    assert read(tmp_path, "q.txt", "north wing 10\n") == {"north wing": 10}


def test_what_is_no_number_is_left_to_screening(tmp_path: Path) -> None:
    found = read(tmp_path, "q.csv", f"a,many\nb,nan\nc,{'9' * 5000}\n")
    assert found["a"] == "many"
    assert found["b"] != found["b"]
    assert isinstance(found["c"], str)


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("q.csv", "a,1,2\n", "not a name and a number"),
        ("q.txt", "lonely\n", "not a name and a number"),
        ("q.csv", "a,1\na,2\n", "is given twice"),
        ("q.json", "3", "neither a table nor a list"),
        ("q.json", "[1]", "a list has entries such as"),
        ("q.json", "{", "write a client's name"),
        ("q.csv", b"\xff\xfe", "write a client's name"),
        ("q.json", "[" * 100_000, "write a client's name"),
    ],
)
def test_mistakes_name_the_file_and_the_form(name: str, text: str | bytes, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"quantities .*q\.") as raised:
        read(tmp_path, name, text)
    assert reason in str(raised.value)


def test_clients_are_found_by_name_file_or_path(tmp_path: Path) -> None:
    paths = [
        Path("a.safetensors"),
        Path("b.npz"),
        Path("deep/c.npy"),
        Path("d/model.safetensors.index.json"),
        Path("e"),
    ]
    given = {"a": 1, "b.npz": 2, "deep/c.npy": 3, "d": 4, "e": 5, "nobody": 6}
    assert claims_of(paths, given, Path("q.csv")) == [1, 2, 3, 4, 5]
    with pytest.raises(ValueError, match=r"nothing for f\.npy; add a line for f"):
        claims_of([Path("f.npy")], given, Path("q.csv"))
