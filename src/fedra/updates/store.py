"""Where result vectors are while a rule works on files: in memory, or in a folder where they outlive the process."""

from __future__ import annotations

import errno
import os
import secrets
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fedra.files import inside, open_plain
from fedra.updates.sources import as_bytes

Array = npt.NDArray[Any]
# What a file system says that has no such call.
_CANNOT = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)


class Store(Protocol):
    """Makes vectors of zeros, and takes what is written to them."""

    def new(self, name: str, dimension: int, dtype: np.dtype[Any]) -> tuple[Array, bool]:
        """Return a vector of zeros, or what was written under this name before, and whether it is that."""
        ...

    def write(self, vector: Array, first: int, values: Array) -> None:
        """Write values at a column."""
        ...

    def read(self, vector: Array, first: int, last: int) -> Array:
        """Return columns of a vector, one of these or any other."""
        ...

    def clear(self) -> None:
        """Forget all vectors: they are of no use any more."""
        ...

    def close(self) -> None:
        """Let go of all vectors."""
        ...


class MemoryStore:
    """Vectors in memory."""

    def new(self, name: str, dimension: int, dtype: np.dtype[Any]) -> tuple[Array, bool]:
        """Return a vector of zeros."""
        return np.zeros(dimension, dtype=dtype), False

    def write(self, vector: Array, first: int, values: Array) -> None:
        """Write values at a column."""
        vector[first : first + len(values)] = values

    def read(self, vector: Array, first: int, last: int) -> Array:
        """Return columns of a vector."""
        return vector[first:last]

    def clear(self) -> None:
        """Nothing is held."""

    def close(self) -> None:
        """Nothing is held."""


class FolderStore:
    """Vectors in files of a folder, which are mapped to be read and written to by calls.

    The space is taken when a vector is made: a disk that is full says so by an OSError, and not by a signal. Every file
    begins with `prefix`, so that one of them may become the result by being moved. Where `lasting`, a file outlives the
    process, and is found again under its name; else it has a name that nobody knew before, and goes with the store.
    """

    def __init__(self, folder: Path, prefix: bytes = b"", *, lasting: bool = False) -> None:
        self.folder, self.prefix, self._lasting = folder, prefix, lasting
        self._files: dict[int, tuple[Array, int, Path]] = {}

    def new(self, name: str, dimension: int, dtype: np.dtype[Any]) -> tuple[Array, bool]:
        """Return a vector that a file holds, and whether the file was there before."""
        if not dimension:
            return np.zeros(0, dtype=dtype), True
        path = inside(self.folder, name if self._lasting else f".fedra-{name}-{secrets.token_hex(4)}")
        size = len(self.prefix) + dimension * dtype.itemsize
        kept = path.is_file() and path.stat().st_size == size
        if not kept:
            path.unlink(missing_ok=True)
            with open_plain(path, "xb") as file:
                _take_room(file.fileno(), size)
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            self._write_all(handle, self.prefix, 0)
            vector = np.memmap(path, dtype=dtype, mode="r", offset=len(self.prefix), shape=(dimension,))
        except BaseException:
            os.close(handle)
            raise
        # The vector itself is kept, else another one could get its identity.
        self._files[id(vector)] = (vector, handle, path)
        return vector, kept

    def write(self, vector: Array, first: int, values: Array) -> None:
        """Write values at a column."""
        handle = self._files[id(vector)][1]
        self._write_all(handle, as_bytes(values), len(self.prefix) + first * values.itemsize)

    def read(self, vector: Array, first: int, last: int) -> Array:
        """Return columns of a vector; of one of these by a call, since pages that are mapped count as memory."""
        if (found := self._files.get(id(vector))) is None:
            return vector[first:last]
        values = np.empty(last - first, dtype=vector.dtype)
        left, offset = as_bytes(values), len(self.prefix) + first * values.itemsize
        while left:
            count = os.preadv(found[1], [left], offset)
            if count == 0:
                raise OSError(f"{found[2]} became shorter; start again")
            left, offset = left[count:], offset + count
        return values

    def path_of(self, vector: Array) -> Path | None:
        """Return the file of a vector; None where it is none of these."""
        found = self._files.get(id(vector))
        return None if found is None else found[2]

    def clear(self) -> None:
        """Remove all vectors; those still in use stay readable."""
        for _, handle, path in self._files.values():
            os.close(handle)
            path.unlink(missing_ok=True)
        self._files = {}

    def close(self) -> None:
        """Let go of the files, and remove those that are not to last."""
        if not self._lasting:
            self.clear()
        for _, handle, _ in self._files.values():
            os.close(handle)
        self._files = {}

    @staticmethod
    def _write_all(handle: int, content: bytes | memoryview, offset: int) -> None:
        left = memoryview(content)
        while left:
            count = os.pwrite(handle, left, offset)
            left, offset = left[count:], offset + count


def _take_room(handle: int, size: int) -> None:
    """Make a file so long, with all of its room on disk where the file system can do that."""
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(handle, 0, size)
            return
    except OSError as error:
        if error.errno not in _CANNOT:
            raise
    # It is written to by calls alone, which say so when the disk is full.
    os.ftruncate(handle, size)
