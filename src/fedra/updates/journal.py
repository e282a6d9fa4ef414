"""What has been done of an aggregation, in a file that outlives the process: appended to, and never rewritten.

Each record is the length of its description, the description as JSON, the bytes of an array, and the SHA-256 of all
that. A process that was killed while it wrote leaves half a record at the end, which is cut off. Nothing is forced to
disk, which would take longer than the work: should the whole system have stopped, then a record that is whole counts,
but not what it says of other files.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedra.files import open_plain
from fedra.untrusted import parsed_json
from fedra.updates.passes import Block

# Of a block and a panel of 1,800 clients: with more of them what is kept on disk costs more than to do it again.
_LARGEST_VALUE = 2 << 20
_LONGEST_DESCRIPTION = 16 << 20
_DIGEST = 32
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_TYPES = {name: np.dtype(name) for name in ("<f4", "<f8", "<u4", "<u8")}


@dataclass(frozen=True, kw_only=True)
class _Record:
    about: dict[str, Any]
    offset: int
    length: int


class Journal:
    """Remembers blocks and notes of an aggregation; one of other inputs, which `fingerprint` tells, begins anew."""

    def __init__(self, path: Path, fingerprint: str) -> None:
        self._file = open_plain(path, "r+b" if path.exists() else "x+b", buffering=0)
        self._lock = threading.Lock()
        self._attempt = ""
        self._blocks: dict[tuple[str, int, int, int], _Record] = {}
        self._notes: dict[str, Any] = {}
        self._boot = ""
        end = 0
        for record, after in self._records():
            if end == 0 and record.about.get("fingerprint") != fingerprint:
                break
            end = after
            self._take(record)
        self._file.truncate(end)
        if end == 0:
            self._append({"fingerprint": fingerprint})
        boot = boot_id()
        if self._boot != boot:
            self._restarted(boot)
            self._append({"boot": boot})
        self.resumed = len(self._blocks)

    def begin(self, attempt: str) -> None:
        """Get ready for an attempt."""
        self._attempt = attempt

    def forget_after(self, number: int) -> None:
        """Forget what later passes of this attempt gave."""
        with self._lock:
            self._blocks = {
                key: record for key, record in self._blocks.items() if key[0] != self._attempt or key[1] <= number
            }

    def find(self, number: int, start: int, stop: int) -> Block | None:
        """Return what a block of a pass gave, where it is known."""
        with self._lock:
            record = self._blocks.get((self._attempt, number, start, stop))
        if record is None:
            return None
        about = record.about
        value = None
        if about["dtype"] is not None:
            content = os.pread(self._file.fileno(), record.length, record.offset)
            value = np.frombuffer(content, dtype=_TYPES[about["dtype"]]).reshape(about["shape"])
        return Block(value, {int(place): bits for place, bits in about["largest"].items()})

    def add(self, number: int, start: int, stop: int, value: npt.NDArray[Any] | None, largest: dict[int, int]) -> None:
        """Remember what a block gave."""
        if value is not None and (value.nbytes > _LARGEST_VALUE or value.dtype.str not in _TYPES):
            return
        about = {
            "block": [self._attempt, number, start, stop],
            "dtype": None if value is None else value.dtype.str,
            "shape": [] if value is None else list(value.shape),
            "largest": largest,
        }
        self._append(about, b"" if value is None else np.ascontiguousarray(value).tobytes())

    def note(self, name: str, value: Any) -> None:
        """Remember a plain value under a name."""
        self._append({"note": name, "value": value})
        self._notes[name] = value

    def noted(self, name: str) -> Any:
        """Return the plain value of this name; None where there is none."""
        return self._notes.get(name)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _append(self, about: dict[str, Any], content: bytes = b"") -> None:
        text = json.dumps({**about, "length": len(content)}).encode()
        whole = b"".join((len(text).to_bytes(8, "little"), text, content))
        left = memoryview(whole + hashlib.sha256(whole).digest())
        with self._lock:
            begin = self._file.seek(0, os.SEEK_END)
            try:
                while left:
                    left = left[self._file.write(left) :]
            except OSError:
                # Else the next record would stand behind half a one, and never be found.
                self._file.truncate(begin)
                raise

    def _take(self, record: _Record) -> None:
        about = record.about
        if "note" in about:
            self._notes[str(about["note"])] = about.get("value")
        elif "boot" in about:
            self._restarted(str(about["boot"]))
        elif "block" in about:
            attempt, number, start, stop = about["block"]
            self._blocks[attempt, number, start, stop] = record

    def _restarted(self, boot: str) -> None:
        """Take notice that the system began anew: what blocks wrote to other files may not have reached the disk."""
        self._boot = boot
        self._blocks = {key: record for key, record in self._blocks.items() if record.about["dtype"] is not None}

    def _records(self) -> Iterator[tuple[_Record, int]]:
        """Yield the whole records, each with where the next one begins, up to the first that is not whole."""
        size = os.fstat(self._file.fileno()).st_size
        place = 0
        while place + 8 <= size:
            prefix = os.pread(self._file.fileno(), 8, place)
            length = int.from_bytes(prefix, "little")
            if length > _LONGEST_DESCRIPTION or place + 8 + length + _DIGEST > size:
                return
            text = os.pread(self._file.fileno(), length, place + 8)
            begin = place + 8 + length
            try:
                about = parsed_json(text)
                following = about["length"]
                if type(following) is not int or not 0 <= following <= _LARGEST_VALUE:
                    return
                content = os.pread(self._file.fileno(), following, begin)
                digest = os.pread(self._file.fileno(), _DIGEST, begin + following)
            except (ValueError, TypeError, KeyError):
                return
            if hashlib.sha256(b"".join((prefix, text, content))).digest() != digest:
                return
            yield _Record(about=about, offset=begin, length=following), begin + following + _DIGEST
            place = begin + following + _DIGEST


def boot_id() -> str:
    """Return what tells one start of the system from another; where it does not tell, every process is on its own."""
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return secrets.token_hex(16)
