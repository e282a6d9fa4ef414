"""A client's files: opened once, read in place at any byte, and the same files at the end as at the start."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from fedra.server.faults import Unusable, short
from fedra.untrusted import opened

_HASH_BYTES = 4 << 20


class SourceFile:
    """One file of a client; every fault of it is an `Unusable`.

    Bytes are read, never mapped: a file that shrinks while it is mapped ends the process.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: BinaryIO | None = _opened(path)
        self._identity = _identity(self._file)
        self.header_digest = ""

    @property
    def size(self) -> int:
        """How many bytes it had when it was opened."""
        return int(self._identity[2])

    @property
    def fingerprint(self) -> tuple[str, int, int, int, str]:
        """What must be the same for partial results to be of this file: path, size, times of change, header."""
        return str(self.path.absolute()), *self._identity[2:], self.header_digest

    @property
    def version(self) -> tuple[str, int, int, str]:
        """What tells on any machine that sees this file that it is the same: name, size, time of writing, header."""
        return self.path.name, self.size, self._identity[3], self.header_digest

    def release(self) -> None:
        """Keep the file closed between reads, for where there are more files than a process may hold open."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def head(self, length: int, offset: int = 0) -> bytes:
        """Return at most so many bytes from a place."""
        buffer = bytearray(max(0, min(length, self.size - offset)))
        self.read_into(memoryview(buffer), offset)
        return bytes(buffer)

    def read_into(self, target: memoryview, offset: int) -> None:
        """Fill a buffer from a place in the file."""

        def fill(handle: int) -> None:
            done = 0
            while done < len(target):
                count = os.preadv(handle, [target[done:]], offset + done)
                if count == 0:
                    raise Unusable(f"{short(self.path.name)} became shorter while it was read")
                done += count

        self._with_handle(fill)

    def expect(self, offset: int, length: int) -> None:
        """Let the system know what will be read next."""
        if self._file is not None and hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._file.fileno(), offset, length, os.POSIX_FADV_WILLNEED)

    def check_unchanged(self) -> None:
        """Refuse a file that is no more what it was when it was opened."""
        try:
            held = self._identity if self._file is None else _identity(self._file)
            with _opened(self.path) as now:
                changed = held != self._identity or _identity(now) != self._identity
        except (OSError, ValueError) as error:
            raise Unusable(f"{short(self.path.name)} cannot be read any more: {short(error)}") from error
        if changed:
            raise Unusable(f"{short(self.path.name)} changed while it was read")

    def sha256(self, progress: Callable[[int], None] = lambda _: None) -> str:
        """Return the checksum of the whole file, as sha256sum has it."""
        digest = hashlib.sha256()
        buffer = memoryview(bytearray(min(_HASH_BYTES, max(1, self.size))))
        for offset in range(0, self.size, len(buffer)):
            part = buffer[: self.size - offset]
            self.read_into(part, offset)
            digest.update(part)
            progress(len(part))
        return digest.hexdigest()

    def close(self) -> None:
        """Close the file."""
        self.release()

    def _with_handle(self, use: Callable[[int], None]) -> None:
        try:
            if self._file is not None:
                use(self._file.fileno())
                return
            with _opened(self.path) as file:
                if _identity(file) != self._identity:
                    raise Unusable(f"{short(self.path.name)} changed while it was read")
                use(file.fileno())
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise Unusable(f"{short(self.path.name)} cannot be read: {short(reason)}") from error


def as_bytes(values: npt.NDArray[Any]) -> memoryview:
    """Return the bytes of a contiguous array, to read into."""
    return values.reshape(-1).view(np.uint8).data


def _opened(path: Path) -> BinaryIO:
    try:
        return opened(path)
    except FileNotFoundError as error:
        raise Unusable(f"there is no file {short(path.name)}") from error
    except (OSError, ValueError) as error:
        reason = getattr(error.__cause__, "strerror", None) or "it is no regular file"
        raise Unusable(f"{short(path.name)} cannot be read: {short(reason)}") from error


def _identity(file: BinaryIO) -> tuple[int, int, int, int, int]:
    found = os.fstat(file.fileno())
    # Whoever writes to a file can set back its time of modification, but not that of its last change.
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def most_open() -> int:
    """Return how many files may be kept open: half of what the process may, for others open some too."""
    import resource  # Not on every system, unlike the rest of this file.

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 20 if soft == resource.RLIM_INFINITY else soft // 2
