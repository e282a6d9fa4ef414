"""A round's replies on disk instead of in memory: in files that have no name, and go with whoever holds them."""

from __future__ import annotations

import logging
import mmap
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedra import checks
from fedra.kernels.mapped import forget

Array = npt.NDArray[Any]


class Spill:
    """Puts what replies hold into files of a folder; what the disk does not take stays in memory, with a warning.

    A file has no name once it is open, so that nothing is left of it after the round, or after a process was killed.
    Its room is taken before it is mapped: writing to memory that a full disk cannot hold would end the process.
    """

    def __init__(self, folder: str | os.PathLike[str], logger: logging.Logger) -> None:
        self.folder: Path = checks.path("spill", folder)
        self._logger = logger

    def check(self) -> None:
        """Raise OSError where nothing could be written: better now than in the first round."""
        self.folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=self.folder).close()

    def vector(self, dimension: int, dtype: np.dtype[Any]) -> Array:
        """Return a vector to write a reply's values to."""
        try:
            return mapped_vector(dimension, dtype, self.folder)
        except OSError as error:
            self._warn(error)
            return np.empty(dimension, dtype=dtype)

    def contents(self, parts: Sequence[bytes]) -> Sequence[bytes | memoryview]:
        """Return the same bytes from one file that holds them all."""
        size = sum(map(len, parts))
        if not size:
            return parts
        try:
            with tempfile.TemporaryFile(dir=self.folder) as file:
                for part in parts:
                    file.write(part)
                file.flush()
                whole = memoryview(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ))
        except OSError as error:
            self._warn(error)
            return parts
        ends = np.cumsum([len(part) for part in parts]).tolist()
        return [whole[end - len(part) : end] for part, end in zip(parts, ends, strict=True)]

    def _warn(self, error: OSError) -> None:
        self._logger.warning("fedra: %s does not take a reply, which stays in memory: %s", self.folder, error)


def mapped_vector(dimension: int, dtype: np.dtype[Any], folder: Path | None = None) -> Array:
    """Return a vector in a file that nobody else sees, in this folder or in the system's for such files."""
    size = dimension * dtype.itemsize
    if not size or not hasattr(os, "posix_fallocate"):
        return np.empty(dimension, dtype=dtype)
    with tempfile.TemporaryFile(dir=folder) as file:
        os.posix_fallocate(file.fileno(), 0, size)
        return np.memmap(file, dtype=dtype, mode="r+", shape=(dimension,))


def written(vector: Array) -> None:
    """Take from memory what was written to a vector that is in a file."""
    forget([vector], 0, vector.size)
