"""MNIST and Fashion-MNIST from their idx files, in torchvision's folder layout."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fedra.data.dataset import Dataset
from fedra.data.errors import DatasetError
from fedra.data.files import get_command, read_bytes
from fedra.data.images import standardise

IDX_STEMS = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
_UNSIGNED_BYTE = 0x08
_SIDE = 28
_FASHION = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")


def find_idx(folder: Path, stem: str) -> Path | None:
    """The packed file or, without one, the unpacked file; packed first because it carries a checksum."""
    return next((path for path in (folder / f"{stem}.gz", folder / stem) if path.is_file()), None)


def read_idx(path: Path, *, dimensions: int, remedy: str) -> npt.NDArray[np.uint8]:
    """An idx file of unsigned bytes: magic 0 0 8 dimensions, big-endian 32-bit sizes, then the values."""
    data = read_bytes(path, remedy)
    header = 4 + 4 * dimensions
    magic = (_UNSIGNED_BYTE << 8) | dimensions
    if len(data) < header:
        raise DatasetError(f"{path}: {len(data)} bytes are too few for an idx header of {header}; {remedy}")
    found, *shape = struct.unpack(f">{1 + dimensions}I", data[:header])
    if found != magic:
        raise DatasetError(f"{path}: starts with magic number {found:#010x}, expected {magic:#010x}; {remedy}")
    if len(data) - header != math.prod(shape):
        raise DatasetError(
            f"{path}: the header promises {math.prod(shape)} values {tuple(shape)}, the file holds "
            f"{len(data) - header}; it is truncated or corrupt; {remedy}"
        )
    return np.frombuffer(data, np.uint8, offset=header).reshape(shape)


def load_mnist(data_dir: Path | None) -> Dataset:
    """MNIST from DIR/MNIST/raw (LeCun et al. 1998)."""
    return _load(data_dir, "mnist", "MNIST", 0.1307, 0.3081, tuple(str(digit) for digit in range(10)))


def load_fashion_mnist(data_dir: Path | None) -> Dataset:
    """Fashion-MNIST from DIR/FashionMNIST/raw (Xiao et al. 2017)."""
    return _load(data_dir, "fashion-mnist", "FashionMNIST", 0.2860, 0.3530, _FASHION)


def _load(
    data_dir: Path | None, name: str, folder: str, mean: float, std: float, class_names: tuple[str, ...]
) -> Dataset:
    remedy = get_command(name, data_dir)
    if data_dir is None:
        raise DatasetError(f"{name}: no data directory; give --data-dir or set FEDRA_DATA, or {remedy}")
    raw = data_dir / folder / "raw"
    parts = []
    for images_stem, labels_stem in (IDX_STEMS[:2], IDX_STEMS[2:]):
        images_path, labels_path = (find_idx(raw, stem) or raw / f"{stem}.gz" for stem in (images_stem, labels_stem))
        pixels = read_idx(images_path, dimensions=3, remedy=remedy)
        labels = read_idx(labels_path, dimensions=1, remedy=remedy)
        if pixels.shape[1:] != (_SIDE, _SIDE):
            raise DatasetError(f"{images_path}: images of {pixels.shape[1:]}, expected {(_SIDE, _SIDE)}; {remedy}")
        if len(pixels) != len(labels):
            raise DatasetError(f"{images_path}: {len(pixels)} images, but {len(labels)} in {labels_path}; {remedy}")
        bad = np.flatnonzero(labels >= len(class_names))
        if bad.size:
            raise DatasetError(f"{labels_path}: label {labels[bad[0]]} at position {bad[0]}, expected 0..9; {remedy}")
        parts.append((standardise(pixels[:, None], mean=[mean], std=[std]), labels.astype(np.int64)))
    (train_inputs, train_labels), (test_inputs, test_labels) = parts
    return Dataset(
        name=name,
        train_inputs=train_inputs,
        train_labels=train_labels,
        test_inputs=test_inputs,
        test_labels=test_labels,
        num_classes=len(class_names),
        class_names=class_names,
    )
