"""MNIST and Fashion-MNIST from idx files, whole and damaged."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fedra.data import DatasetError, load_dataset

IMAGES, LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize(
    ("name", "folder", "mean", "std"),
    [("mnist", "MNIST", 0.1307, 0.3081), ("fashion-mnist", "FashionMNIST", 0.2860, 0.3530)],
)
def test_pixels_are_standardised(
    tmp_path: Path, write_idx: Callable, packed: bool, name: str, folder: str, mean: float, std: float
) -> None:
    content = write_idx(tmp_path / folder / "raw", packed=packed)
    dataset = load_dataset(name, tmp_path)
    assert dataset.train_inputs.shape == (40, 1, 28, 28)
    assert dataset.test_inputs.shape == (20, 1, 28, 28)
    expected = (content[IMAGES][:, None] / 255.0 - mean) / std
    np.testing.assert_allclose(dataset.train_inputs, expected, rtol=1e-6)
    np.testing.assert_array_equal(dataset.train_labels, content[LABELS])


def test_the_packed_file_wins_because_it_is_what_a_download_repairs(tmp_path: Path, write_idx: Callable) -> None:
    raw = tmp_path / "MNIST" / "raw"
    write_idx(raw)
    (raw / IMAGES).write_bytes(b"damaged")
    assert len(load_dataset("mnist", tmp_path).train_labels) == 40


def damage_gzip(raw: Path) -> None:
    """Flip a byte in the middle of the compressed stream."""
    path = raw / f"{IMAGES}.gz"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(bytes(data))


def cut_gzip(raw: Path) -> None:
    """Lose the second half."""
    path = raw / f"{IMAGES}.gz"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def not_gzip(raw: Path) -> None:
    """What a captive portal leaves behind."""
    (raw / f"{IMAGES}.gz").write_bytes(b"<html>Sign in</html>")


def repack(raw: Path, change: Callable[[bytes], bytes], stem: str = IMAGES) -> None:
    """Change the unpacked content."""
    path = raw / f"{stem}.gz"
    path.write_bytes(gzip.compress(change(gzip.decompress(path.read_bytes()))))


@pytest.mark.parametrize(
    ("damage", "problem", "stem"),
    [
        (damage_gzip, "corrupt or truncated gzip file", IMAGES),
        (cut_gzip, "corrupt or truncated gzip file", IMAGES),
        (not_gzip, "corrupt or truncated gzip file", IMAGES),
        (lambda raw: (raw / f"{IMAGES}.gz").unlink(), "no such file", IMAGES),
        (lambda raw: repack(raw, lambda data: data[:-1]), "the header promises 31360 values", IMAGES),
        (lambda raw: repack(raw, lambda data: data + b"x"), "the file holds 31361", IMAGES),
        (lambda raw: repack(raw, lambda data: data[:7]), "7 bytes are too few", IMAGES),
        (lambda raw: repack(raw, lambda data: b"\x00\x00\x0d\x03" + data[4:]), "magic number 0x00000d03", IMAGES),
        (lambda raw: repack(raw, lambda data: data[:-1] + b"\x0a", LABELS), "label 10 at position 39", LABELS),
        (
            lambda raw: repack(raw, lambda data: data[:7] + b"\x27" + data[8:-1], LABELS),
            "40 images, but 39 in",
            IMAGES,
        ),
        (
            lambda raw: repack(raw, lambda data: data[:11] + b"\x38" + data[12:15] + b"\x0e" + data[16:]),
            "images of (56, 14), expected (28, 28)",
            IMAGES,
        ),
    ],
)
def test_damage_is_told_with_the_file_and_the_remedy(
    tmp_path: Path, write_idx: Callable, damage: Callable[[Path], None], problem: str, stem: str
) -> None:
    raw = tmp_path / "MNIST" / "raw"
    write_idx(raw)
    damage(raw)
    with pytest.raises(DatasetError) as caught:
        load_dataset("mnist", tmp_path)
    message = str(caught.value)
    assert problem in message
    assert str(raw / f"{stem}.gz") in message
    assert f"fedra data get mnist --data-dir {tmp_path}" in message


def test_an_unpacked_file_that_is_cut_is_told(tmp_path: Path, write_idx: Callable) -> None:
    raw = tmp_path / "FashionMNIST" / "raw"
    write_idx(raw, packed=False)
    (raw / IMAGES).write_bytes((raw / IMAGES).read_bytes()[:-100])
    with pytest.raises(DatasetError, match="truncated or corrupt; get it with: fedra data get fashion-mnist"):
        load_dataset("fashion-mnist", tmp_path)


def test_without_a_data_directory_the_error_says_how_to_name_one() -> None:
    with pytest.raises(DatasetError, match="give --data-dir or set FEDRA_DATA"):
        load_dataset("mnist")


def test_real_mnist(real_data_dir: Path) -> None:
    if not (real_data_dir / "MNIST" / "raw").is_dir():
        pytest.skip("needs MNIST/raw under FEDRA_DATA")
    dataset = load_dataset("mnist", real_data_dir)
    assert dataset.train_inputs.shape == (60000, 1, 28, 28)
    assert dataset.test_inputs.shape == (10000, 1, 28, 28)
    assert dataset.train_labels[:5].tolist() == [5, 0, 4, 1, 9]
    assert abs(float(dataset.train_inputs.mean(dtype=np.float64))) < 1e-3
