from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

from fedra.kernels.mapped import is_mapped
from fedra.server.form import model_form, view_array
from fedra.server.replies import Reply
from fedra.server.spill import Spill, written
from fedra.server.vectors import flat_vectors

LOGGER = logging.getLogger("tests.spill")
FORM = model_form({"a": (np.dtype(np.float32), (5000,)), "b": (np.dtype(np.float16), (10,))})


def spill(folder: Path) -> Spill:
    made = Spill(folder, LOGGER)
    made.check()
    return made


def replies(count: int) -> list[Reply]:
    rng = np.random.default_rng(0)
    made = []
    for place in range(count):
        arrays = {
            "a": rng.standard_normal(5000).astype(np.float32),
            "b": rng.standard_normal(10).astype(np.float16),
        }
        made.append(Reply(client=place, message=arrays))
        made[-1].views = FORM.read(arrays, view_array)
    return made


@pytest.mark.parametrize("minus", [None, np.ones(5010, np.float32)])
def test_vectors_on_disk_are_those_in_memory_and_leave_nothing(minus: np.ndarray | None, tmp_path: Path) -> None:
    found = flat_vectors(
        replies(7), FORM, minus=minus, release=lambda _: None, threads=2, spill=spill(tmp_path / "deep" / "folder")
    )
    expected = flat_vectors(replies(7), FORM, minus=minus, release=lambda _: None, threads=2)
    assert all(map(is_mapped, found))
    assert [vector.tobytes() for vector in found] == [vector.tobytes() for vector in expected]
    assert list((tmp_path / "deep" / "folder").iterdir()) == []


def test_bytes_come_back_as_they_were(tmp_path: Path) -> None:
    parts = [b"abc", b"", b"x" * 10_000]
    found = spill(tmp_path).contents(parts)
    assert [bytes(part) for part in found] == parts
    assert all(isinstance(part, memoryview) and part.readonly for part in found)
    assert spill(tmp_path).contents([]) == []
    assert spill(tmp_path).contents([b""]) == [b""]
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_replies_in_memory_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made = spill(tmp_path)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("fedra.server.spill.tempfile.TemporaryFile", full)
    vector = made.vector(10, np.dtype(np.float32))
    assert not is_mapped(vector)
    written(vector)
    assert made.contents([b"abc"]) == [b"abc"]
    assert caplog.text.count("does not take a reply, which stays in memory") == 2


def test_a_folder_that_cannot_be_is_told_before_the_first_round(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        spill(tmp_path / "file")
    with pytest.raises(TypeError, match="spill="):
        Spill(5, LOGGER)  # type: ignore[arg-type]
