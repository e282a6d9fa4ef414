from __future__ import annotations

import errno
from pathlib import Path

import numpy as np
import pytest

from fedra.updates.store import FolderStore, MemoryStore, Store

FLOAT = np.dtype(np.float32)


@pytest.fixture(params=["memory", "folder", "prefix"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "memory":
        return MemoryStore()
    return FolderStore(tmp_path, b"before" if request.param == "prefix" else b"")


def test_what_is_written_is_read(store: Store) -> None:
    vector, kept = store.new("vector-a-1", 5000, FLOAT)
    assert not kept
    assert not vector.any()
    values = np.arange(2000, dtype=np.float32)
    store.write(vector, 1000, values)
    assert (vector[1000:3000] == values).all()
    assert (store.read(vector, 999, 1003) == [0, 0, 1, 2]).all()
    assert vector.sum() == values.sum(dtype=np.float64)
    other = np.arange(10.0)
    assert (store.read(other, 2, 4) == [2, 3]).all()
    store.close()
    assert (vector[1000:3000] == values).all()


def test_two_vectors_of_one_name_are_two_unless_they_last(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    first, _ = store.new("vector-a-1", 10, FLOAT)
    second, kept = store.new("vector-a-1", 10, FLOAT)
    store.write(second, 0, np.ones(10, np.float32))
    assert not kept
    assert not first.any()
    store.close()
    assert list(tmp_path.iterdir()) == []


def test_one_that_lasts_is_found_again(tmp_path: Path) -> None:
    store = FolderStore(tmp_path, b"head", lasting=True)
    vector, _ = store.new("vector-a-1", 10, FLOAT)
    store.write(vector, 0, np.ones(10, np.float32))
    store.close()
    again = FolderStore(tmp_path, b"head", lasting=True)
    vector, kept = again.new("vector-a-1", 10, FLOAT)
    assert kept
    assert vector.all()
    path = again.path_of(vector)
    assert path is not None
    assert path.read_bytes() == b"head" + np.ones(10, np.float32).tobytes()
    assert not again.new("vector-a-1", 11, FLOAT)[1], "of another length it is another one"
    again.clear()
    assert list(tmp_path.iterdir()) == []


def test_a_vector_of_nothing(tmp_path: Path) -> None:
    assert FolderStore(tmp_path).new("vector-a-1", 0, FLOAT)[0].size == 0


def test_a_file_system_that_cannot_take_room_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(*_: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr("os.posix_fallocate", cannot)
    store = FolderStore(tmp_path)
    vector, _ = store.new("vector-a-1", 10, FLOAT)
    store.write(vector, 3, np.ones(1, np.float32))
    assert vector.sum() == 1
    store.close()


def test_a_link_in_the_place_of_a_vector_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "vector-a-1").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="is a link"):
        FolderStore(tmp_path, lasting=True).new("vector-a-1", 10, FLOAT)
    assert not (tmp_path / "elsewhere").exists()


def test_a_vector_that_was_cut_is_an_error(tmp_path: Path) -> None:
    store = FolderStore(tmp_path, lasting=True)
    vector, _ = store.new("vector-a-1", 10_000, FLOAT)
    path = store.path_of(vector)
    assert path is not None
    with path.open("r+b") as file:
        file.truncate(100)
    with pytest.raises(OSError, match="became shorter"):
        store.read(vector, 0, 10_000)
    store.close()
