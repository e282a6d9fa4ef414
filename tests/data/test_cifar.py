"""CIFAR-10 in both layouts, whole, damaged and hostile."""

from __future__ import annotations

import os
import pickle
import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from fedra.data import DatasetError, load_dataset
from fedra.data.cifar import CIFAR_BATCHES, read_python_batch

ROWS = 6


def batch(number: int) -> tuple[npt.NDArray[np.uint8], list[int]]:
    """Pixels and labels of a small batch."""
    rng = np.random.default_rng(number)
    return rng.integers(0, 256, (ROWS, 3072), np.uint8), rng.integers(0, 10, ROWS).tolist()


def write_binary(data_dir: Path) -> Path:
    """The binary version: six files of records."""
    folder = data_dir / "cifar-10-batches-bin"
    folder.mkdir()
    for number, name in enumerate(CIFAR_BATCHES):
        pixels, labels = batch(number)
        records = np.concatenate([np.array(labels, np.uint8)[:, None], pixels], axis=1)
        (folder / f"{name}.bin").write_bytes(records.tobytes())
    return folder


def python2_pickle(pixels: npt.NDArray[np.uint8], labels: list[int]) -> bytes:
    """What Python 2's pickle, protocol 2, made of the original dictionaries, opcode by opcode."""

    def text(value: bytes) -> bytes:
        return b"U" + bytes([len(value)]) + value

    rows, columns = pixels.shape
    reconstruct = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00t" + text(b"b") + b"tR"
    dtype = (
        b"cnumpy\ndtype\n("
        + text(b"u1")
        + b"K\x00K\x01tR(K\x03"
        + text(b"|")
        + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    )
    raw = b"T" + struct.pack("<i", pixels.size) + pixels.tobytes()
    state = (
        b"(K\x01(M" + struct.pack("<H", rows) + b"M" + struct.pack("<H", columns) + b"t" + dtype + b"\x89" + raw + b"tb"
    )
    label_list = b"](" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"
    return (
        b"\x80\x02}("
        + text(b"batch_label") + text(b"training batch 1 of 5")
        + text(b"labels") + label_list
        + text(b"data") + reconstruct + state
        + b"u."
    )  # fmt: skip


def write_python(data_dir: Path, *, modern: bool = False) -> Path:
    """The python version, as Python 2 wrote it or as Python 3 writes it."""
    folder = data_dir / "cifar-10-batches-py"
    folder.mkdir()
    for number, name in enumerate(CIFAR_BATCHES):
        pixels, labels = batch(number)
        data = pickle.dumps({"data": pixels, "labels": labels}, 2) if modern else python2_pickle(pixels, labels)
        (folder / name).write_bytes(data)
    return folder


def test_all_layouts_give_the_same_data(tmp_path: Path) -> None:
    for place in ("binary", "python", "modern"):
        (tmp_path / place).mkdir()
    write_binary(tmp_path / "binary")
    write_python(tmp_path / "python")
    write_python(tmp_path / "modern", modern=True)
    binary, python, modern = (load_dataset("cifar10", tmp_path / place) for place in ("binary", "python", "modern"))
    pixels, labels = batch(0)
    centre = np.array([0.4914, 0.4822, 0.4465])[:, None, None]
    spread = np.array([0.2470, 0.2435, 0.2616])[:, None, None]
    expected = (pixels.reshape(-1, 3, 32, 32) / 255.0 - centre) / spread
    np.testing.assert_allclose(binary.train_inputs[:ROWS], expected, rtol=1e-6, atol=1e-6)
    assert binary.train_labels[:ROWS].tolist() == labels
    assert binary.train_inputs.shape == (5 * ROWS, 3, 32, 32)
    for other in (python, modern):
        np.testing.assert_array_equal(other.train_inputs, binary.train_inputs)
        np.testing.assert_array_equal(other.test_inputs, binary.test_inputs)
        np.testing.assert_array_equal(other.train_labels, binary.train_labels)
        np.testing.assert_array_equal(other.test_labels, binary.test_labels)


def test_a_complete_layout_wins_over_an_incomplete_one(tmp_path: Path) -> None:
    (write_binary(tmp_path) / "data_batch_3.bin").unlink()
    write_python(tmp_path)
    assert len(load_dataset("cifar10", tmp_path).train_labels) == 5 * ROWS


def test_damaged_binary_files_are_told(tmp_path: Path) -> None:
    folder = write_binary(tmp_path)
    path = folder / "data_batch_2.bin"
    whole = path.read_bytes()
    for content, problem in (
        (whole[:-1], f"{len(whole) - 1} bytes are no whole number of records of 3073"),
        (b"", "0 bytes are no whole number"),
        (b"\x0b" + whole[1:], "label 11 in record 0"),
    ):
        path.write_bytes(content)
        with pytest.raises(DatasetError, match=problem) as caught:
            load_dataset("cifar10", tmp_path)
        assert str(path) in str(caught.value)
        assert "fedra data get cifar10" in str(caught.value)
    path.unlink()
    with pytest.raises(DatasetError, match=r"data_batch_2\.bin: no such file"):
        load_dataset("cifar10", tmp_path)


def test_damaged_pickles_are_told(tmp_path: Path) -> None:
    pixels, labels = batch(0)
    path = tmp_path / "data_batch_1"
    whole = python2_pickle(pixels, labels)
    for content, problem in (
        (whole[: len(whole) // 2], "corrupt or truncated pickle"),
        (b"", "corrupt or truncated pickle"),
        (b"not a pickle", "corrupt or truncated pickle"),
        (pickle.dumps([1, 2]), "no b'data' array"),
        (pickle.dumps({"data": pixels[:, :100], "labels": labels}, 2), "no b'data' array of bytes with 3072 columns"),
        (pickle.dumps({"data": pixels.astype(np.float32), "labels": labels}, 2), "array of 'f4', expected u1"),
        (python2_pickle(pixels, labels[:-1]), f"no b'labels' list of {ROWS} integers"),
        (pickle.dumps({"data": pixels, "labels": ["a"] * ROWS}, 2), "no b'labels' list"),
        (python2_pickle(pixels, [0] * (ROWS - 1) + [12]), f"label 12 in record {ROWS - 1}"),
    ):
        path.write_bytes(content)
        with pytest.raises(DatasetError, match=problem) as caught:
            read_python_batch(path, "the remedy")
        assert str(path) in str(caught.value)
        assert "the remedy" in str(caught.value)


class _Hostile:
    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (f"touch {self.target}",)


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_hostile_pickle_runs_nothing(tmp_path: Path, protocol: int) -> None:
    target, path = tmp_path / "ran", tmp_path / "data_batch_1"
    path.write_bytes(pickle.dumps({"data": _Hostile(target), "labels": []}, protocol))
    with pytest.raises(DatasetError, match=r"asks for (posix|nt)\.system"):
        read_python_batch(path, "the remedy")
    assert not target.exists()


def test_a_pickle_cannot_change_the_shared_byte_dtype(tmp_path: Path) -> None:
    pixels, labels = batch(0)
    path = tmp_path / "data_batch_1"
    path.write_bytes(python2_pickle(pixels, labels).replace(b"U\x01|NNN", b"U\x01>NNN"))
    read_python_batch(path, "the remedy")
    assert np.dtype(np.uint8).byteorder == "|"


def test_real_cifar10(real_data_dir: Path) -> None:
    if not any((real_data_dir / f"cifar-10-batches-{layout}").is_dir() for layout in ("bin", "py")):
        pytest.skip("needs cifar-10-batches-bin or -py under FEDRA_DATA")
    dataset = load_dataset("cifar10", real_data_dir)
    assert dataset.train_inputs.shape == (50000, 3, 32, 32)
    assert dataset.train_labels[:5].tolist() == [6, 9, 9, 4, 1]
    assert np.bincount(dataset.test_labels).tolist() == [1000] * 10
