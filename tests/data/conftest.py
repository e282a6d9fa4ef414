"""Writers of small files in the real formats, and the real files where FEDRA_DATA names them."""

from __future__ import annotations

import gzip
import os
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

STEMS = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


REAL_DATA_DIR = os.environ.get("FEDRA_DATA")


@pytest.fixture(autouse=True)
def _no_ambient_data_dir(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FEDRA_DATA", raising=False)


@pytest.fixture(scope="session")
def real_data_dir() -> Path:
    """The folder FEDRA_DATA names."""
    if not REAL_DATA_DIR:
        pytest.skip("needs real data: set FEDRA_DATA to a data directory")
    return Path(REAL_DATA_DIR)


def idx_bytes(values: npt.NDArray[np.uint8]) -> bytes:
    """An idx file: magic, sizes, values."""
    return struct.pack(f">{1 + values.ndim}I", 0x0800 | values.ndim, *values.shape) + values.tobytes()


@pytest.fixture
def write_idx() -> Callable[..., dict[str, npt.NDArray[np.uint8]]]:
    """Write the four idx files of an MNIST-like data set, packed or not, and return their content by stem."""

    def write(
        folder: Path, *, packed: bool = True, num_train: int = 40, num_test: int = 20
    ) -> dict[str, npt.NDArray[np.uint8]]:
        rng = np.random.default_rng(7)
        folder.mkdir(parents=True)
        content: dict[str, npt.NDArray[np.uint8]] = {}
        for images, labels, count in ((STEMS[0], STEMS[1], num_train), (STEMS[2], STEMS[3], num_test)):
            content[images] = rng.integers(0, 256, (count, 28, 28), np.uint8)
            content[labels] = rng.integers(0, 10, count, np.uint8)
        for stem, values in content.items():
            if packed:
                (folder / f"{stem}.gz").write_bytes(gzip.compress(idx_bytes(values)))
            else:
                (folder / stem).write_bytes(idx_bytes(values))
        return content

    return write


@pytest.fixture
def write_news() -> Callable[..., Path]:
    """Write a news.tsv in MIND's eight columns."""

    def write(path: Path, rows: list[tuple[str, str]]) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [
            f"N{number}\t{category}\tsub\t{title}\tabstract\turl\t[]\t[]"
            for number, (category, title) in enumerate(rows)
        ]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
        return path

    return write
