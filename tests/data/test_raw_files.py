"""Reading data files: what is wrong names the file and the remedy."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from fedra.data import DatasetError, raw_files
from fedra.data.raw_files import read_bytes

CONTENT = bytes(range(256)) * 20


def test_packed_and_unpacked_files_have_the_same_content(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(CONTENT)
    (tmp_path / "packed.gz").write_bytes(gzip.compress(CONTENT))
    assert read_bytes(tmp_path / "plain", "get it") == read_bytes(tmp_path / "packed.gz", "get it") == CONTENT


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda packed: packed[:-10], "corrupt or truncated gzip file"),
        (lambda packed: b"x" + packed, "corrupt or truncated gzip file"),
        (lambda packed: packed[:30] + bytes([packed[30] ^ 255]) + packed[31:], "corrupt or truncated gzip file"),
    ],
)
def test_damage_is_told_with_the_remedy(tmp_path: Path, damage: Callable[[bytes], bytes], problem: str) -> None:
    file = tmp_path / "x.gz"
    file.write_bytes(damage(gzip.compress(CONTENT)))
    with pytest.raises(DatasetError, match=rf"x\.gz: {problem}.*; get it again$"):
        read_bytes(file, "get it again")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"x: no such file; get it$"):
        read_bytes(tmp_path / "x", "get it")


def test_a_folder_in_the_place_of_a_file(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"is a folder, not a file; a file must be there; get it$"):
        read_bytes(tmp_path, "get it")


@pytest.mark.parametrize("name", ["x", "x.gz"])
def test_no_more_than_the_most_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(raw_files, "MOST_BYTES", len(CONTENT))
    file = tmp_path / name
    for content in (CONTENT, CONTENT + b"x"):
        file.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
        if content == CONTENT:
            assert read_bytes(file, "get it") == CONTENT
        else:
            with pytest.raises(DatasetError, match="holds more than 5,120 bytes; get it"):
                read_bytes(file, "get it")
