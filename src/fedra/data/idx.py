"""MNIST and Fashion-MNIST from their idx files, in torchvision's folder layout."""

from __future__ import annotations

import math
import struct
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fedra.data.dataset import Dataset, DatasetError
from fedra.data.images import standardise
from fedra.data.raw_files import read_bytes
from fedra.data.spec import DatasetSpec, RemoteFile, Source

IDX_STEMS = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
_UNSIGNED_BYTE = 0x08
_SIDE = 28
_DIGITS = tuple(str(digit) for digit in range(10))
_CLOTHES = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")


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
    return _load(data_dir, MNIST, 0.1307, 0.3081, _DIGITS)


def load_fashion_mnist(data_dir: Path | None) -> Dataset:
    """Fashion-MNIST from DIR/FashionMNIST/raw (Xiao et al. 2017)."""
    return _load(data_dir, FASHION_MNIST, 0.2860, 0.3530, _CLOTHES)


def _load(data_dir: Path | None, spec: DatasetSpec, mean: float, std: float, class_names: tuple[str, ...]) -> Dataset:
    remedy = spec.remedy(data_dir)
    paths = spec.files(spec.require_dir(data_dir))
    parts = []
    for images_path, labels_path in (paths[:2], paths[2:]):
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
        name=spec.name,
        train_inputs=train_inputs,
        train_labels=train_labels,
        test_inputs=test_inputs,
        test_labels=test_labels,
        num_classes=len(class_names),
        class_names=class_names,
    )


def _paths(folder: str, data_dir: Path) -> tuple[Path, ...]:
    raw = data_dir / folder
    return tuple(find_idx(raw, stem) or raw / f"{stem}.gz" for stem in IDX_STEMS)


def _remote_files(*known: tuple[str, int]) -> tuple[RemoteFile, ...]:
    return tuple(
        RemoteFile(name=f"{stem}.gz", md5=md5, size=size) for stem, (md5, size) in zip(IDX_STEMS, known, strict=True)
    )


MNIST = DatasetSpec(
    name="mnist",
    label="MNIST",
    summary="handwritten digits, 28x28, 10 classes",
    load=load_mnist,
    files=partial(_paths, "MNIST/raw"),
    source=Source(
        folder="MNIST/raw",
        mirrors=(
            "https://ossci-datasets.s3.amazonaws.com/mnist/",
            "https://storage.googleapis.com/cvdf-datasets/mnist/",
        ),
        files=_remote_files(
            ("f68b3c2dcbeaaa9fbdd348bbdeb94873", 9_912_422),
            ("d53e105ee54ea40749a09fcbcd1e9432", 28_881),
            ("9fb629c4189551a2d022fa330f9573f3", 1_648_877),
            ("ec29112dd5afa0611ce80d1b7f02629c", 4_542),
        ),
    ),
    model="cnn28",
    learning_rate=1e-4,
    # 3,060 clients, standard deviation 188, maximum 7,109: within 5% of the paper's Table 1.
    partition_seed=9080,
)

FASHION_MNIST = DatasetSpec(
    name="fashion-mnist",
    label="Fashion-MNIST",
    summary="articles of clothing, 28x28, 10 classes",
    load=load_fashion_mnist,
    files=partial(_paths, "FashionMNIST/raw"),
    source=Source(
        folder="FashionMNIST/raw",
        mirrors=(
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
            "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
        ),
        files=_remote_files(
            ("8d4fb7e6c68d591d4c3dfef9ec88bf0d", 26_421_880),
            ("25c81989df183df01b3e8a0aad5dffbe", 29_515),
            ("bef4ecab320f06d8554ea6380940ec79", 4_422_102),
            ("bb300cfdad3c16e7a12a480ee83cd310", 5_148),
        ),
    ),
    model="cnn28",
    learning_rate=1e-4,
    # Cut into clients as MNIST is.
    partition_seed=9080,
)
