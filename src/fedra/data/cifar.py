"""CIFAR-10 from its binary version or from its python version (Krizhevsky 2009)."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedra.data.dataset import Dataset, DatasetError
from fedra.data.images import standardise
from fedra.data.raw_files import read_bytes
from fedra.data.spec import DatasetSpec, RemoteFile, Source

CIFAR_BATCHES = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch")
BINARY_FOLDER = "cifar-10-batches-bin"
PYTHON_FOLDER = "cifar-10-batches-py"
_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_MEAN, _STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
_PIXELS = 3 * 32 * 32

Batch = tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]


def batch_paths(data_dir: Path) -> tuple[Path, ...]:
    """The six files of the layout that is there; of the binary one, which needs no pickle, when both or neither are."""
    binary = tuple(data_dir / BINARY_FOLDER / f"{batch}.bin" for batch in CIFAR_BATCHES)
    python = tuple(data_dir / PYTHON_FOLDER / batch for batch in CIFAR_BATCHES)
    complete = (paths for paths in (binary, python) if all(path.is_file() for path in paths))
    started = (paths for paths in (binary, python) if any(path.is_file() for path in paths))
    return next(complete, None) or next(started, binary)


def load_cifar10(data_dir: Path | None) -> Dataset:
    """CIFAR-10 from DIR/cifar-10-batches-bin or DIR/cifar-10-batches-py."""
    remedy = CIFAR10.remedy(data_dir)
    paths = CIFAR10.files(CIFAR10.require_dir(data_dir))
    read = read_binary_batch if paths[0].suffix == ".bin" else read_python_batch
    *train, test = (read(path, remedy) for path in paths)
    return Dataset(
        name=CIFAR10.name,
        train_inputs=standardise(np.concatenate([pixels for pixels, _ in train]), mean=_MEAN, std=_STD),
        train_labels=np.concatenate([labels for _, labels in train]),
        test_inputs=standardise(test[0], mean=_MEAN, std=_STD),
        test_labels=test[1],
        num_classes=len(_CLASSES),
        class_names=_CLASSES,
    )


def read_binary_batch(path: Path, remedy: str) -> Batch:
    """Records of one label byte and 3,072 pixel bytes."""
    data = read_bytes(path, remedy)
    if not data or len(data) % (1 + _PIXELS):
        raise DatasetError(
            f"{path}: {len(data)} bytes are no whole number of records of {1 + _PIXELS}; it is truncated; {remedy}"
        )
    records = np.frombuffer(data, np.uint8).reshape(-1, 1 + _PIXELS)
    return _checked(path, records[:, 1:], records[:, 0].astype(np.int64), remedy)


def read_python_batch(path: Path, remedy: str) -> Batch:
    """A pickled dictionary with b"data", bytes (N, 3072), and b"labels", a list of N integers."""
    data = read_bytes(path, remedy)
    try:
        content = _ArrayUnpickler(io.BytesIO(data), encoding="bytes").load()
    except DatasetError as error:
        raise DatasetError(f"{path}: {error}; {remedy}") from error
    except Exception as error:  # Damaged pickles raise almost any class, as the pickle module documents.
        raise DatasetError(f"{path}: corrupt or truncated pickle ({error}); {remedy}") from error
    pixels, labels = (_field(content, key) for key in ("data", "labels"))
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.ndim != 2 or pixels.shape[1] != _PIXELS:
        raise DatasetError(f"{path}: no b'data' array of bytes with {_PIXELS} columns; {remedy}")
    if not isinstance(labels, list) or len(labels) != len(pixels) or not all(type(label) is int for label in labels):
        raise DatasetError(f"{path}: no b'labels' list of {len(pixels)} integers; {remedy}")
    return _checked(path, pixels, np.array(labels, np.int64), remedy)


class _ArrayUnpickler(pickle.Unpickler):
    """Reads dictionaries, lists, numbers, strings and NumPy arrays, and refuses every other name in the file."""

    def find_class(self, module: str, name: str) -> Any:
        """Stand-ins for what an array of bytes needs, under its old and its new module name."""
        try:
            return _PERMITTED[module, name]
        except KeyError:
            raise DatasetError(f"the pickle asks for {module}.{name}, which no CIFAR-10 file contains") from None


def _empty_array(subtype: Any, shape: Any, typecode: Any) -> npt.NDArray[np.uint8]:
    return np.empty(0, np.uint8)


def _byte_dtype(code: Any, *_: Any) -> np.dtype[np.uint8]:
    if code not in (b"u1", "u1"):
        raise DatasetError(f"the pickle holds an array of {code!r}, expected u1")
    # A copy, because unpickling sets the state of what it is given, and the original is shared by the whole process.
    return np.dtype(np.uint8, copy=True)


def _encode_latin1(text: str, encoding: Any) -> bytes:
    return text.encode("latin1")


_PERMITTED: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _empty_array,
    ("numpy._core.multiarray", "_reconstruct"): _empty_array,
    ("numpy", "ndarray"): None,
    ("numpy", "dtype"): _byte_dtype,
    ("_codecs", "encode"): _encode_latin1,
}


def _field(content: Any, key: str) -> Any:
    return content.get(key.encode(), content.get(key)) if isinstance(content, dict) else None


def _checked(path: Path, pixels: npt.NDArray[np.uint8], labels: npt.NDArray[np.int64], remedy: str) -> Batch:
    bad = np.flatnonzero((labels < 0) | (labels >= len(_CLASSES)))
    if bad.size:
        raise DatasetError(f"{path}: label {labels[bad[0]]} in record {bad[0]}, expected 0..9; {remedy}")
    return pixels.reshape(-1, 3, 32, 32), labels


CIFAR10 = DatasetSpec(
    name="cifar10",
    label="CIFAR-10",
    summary="colour photographs, 32x32x3, 10 classes",
    load=load_cifar10,
    files=batch_paths,
    # The binary version rather than the python one: it needs no pickle.
    source=Source(
        folder="",
        mirrors=("https://www.cs.toronto.edu/~kriz/",),
        files=(
            RemoteFile(
                name="cifar-10-binary.tar.gz",
                md5="c32a1d4ab5d03f1284b67883e8d87530",
                size=170_052_171,
                # Six batches of 30,730,000 bytes, and a few texts.
                unpacked=190_000_000,
                members={
                    f"{BINARY_FOLDER}/data_batch_1.bin": "5dd7e06a14cb22eb9f671a540d1b7c25",
                    f"{BINARY_FOLDER}/data_batch_2.bin": "5ea93a67294ea407fff1d09f752e9692",
                    f"{BINARY_FOLDER}/data_batch_3.bin": "942cd6a4bcdd0dd3c604fbe906cb4421",
                    f"{BINARY_FOLDER}/data_batch_4.bin": "ae636b3ba5c66a11e91e8cb52e771fcb",
                    f"{BINARY_FOLDER}/data_batch_5.bin": "53f37980c15c3d472c316c40844f3f0d",
                    f"{BINARY_FOLDER}/test_batch.bin": "803d5f7f4d78ea53de84dbe85f74fb6d",
                },
            ),
        ),
    ),
    model="cnn32",
    learning_rate=1e-3,
    # 3,092 clients, standard deviation 198, maximum 8,890: within 5% of the paper's Table 1.
    partition_seed=10566,
)
