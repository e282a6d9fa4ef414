"""The file of the audit trail: JSON Lines, appended to and never rewritten."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any, ClassVar

from fedra import checks
from fedra.files import open_plain
from fedra.server import Observer, RoundRecord
from fedra.server.observers import checked_observers

_MEBIBYTE = 1024 * 1024
# Rounds that the disk did not take wait in memory, up to so many bytes.
_MOST_WAITING = 16 * _MEBIBYTE


class AuditLog(Observer):
    """Appends rounds to a file of JSON lines; each round is one write, on disk before `round` returns.

    A file that has reached `max_bytes` is renamed to ``FILE.1``, ``FILE.2``, ... (the highest number is the latest),
    and a new one begun. Nothing is ever deleted. A link, a pipe or a device in the file's place is an OSError.

    A round that the disk does not take raises OSError and leaves no part of itself in the file. It waits, up to 16 MiB
    of such rounds, and is written before the next; lines beyond that are lost, and the next round says how many.
    """

    label: ClassVar[str] = "the audit trail"

    def __init__(self, path: str | os.PathLike[str], *, max_bytes: int = 64 * _MEBIBYTE) -> None:
        self.path = checks.path("path", path)
        self.max_bytes = checks.whole("max_bytes", max_bytes, 1)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # A path that cannot be written to is the caller's mistake, and better told now than after a round.
        open_plain(self.path, "ab").close()
        self._waiting: list[bytes] = []
        self._lost = 0

    def round(self, record: RoundRecord) -> None:
        """Append one round, after those that wait."""
        lines = record_lines(record, lost=self._lost)
        data = "".join(f"{line}\n" for line in lines).encode()
        try:
            self._append(b"".join((*self._waiting, data)))
        except OSError:
            if sum(map(len, self._waiting)) + len(data) <= _MOST_WAITING:
                self._waiting.append(data)
                self._lost = 0
            else:
                self._lost += len(lines)
            raise
        self._waiting = []
        self._lost = 0

    def _append(self, data: bytes) -> None:
        self._rotate()
        # Unbuffered: what a buffer could not write it would try again when it is closed.
        with open_plain(self.path, "ab", buffering=0) as file:
            # A server that was killed while writing left half a line; what follows must not be glued to it.
            if _torn(self.path):
                data = b"\n" + data
            begin, left = os.fstat(file.fileno()).st_size, memoryview(data)
            try:
                while left:
                    left = left[file.write(left) :]
                os.fsync(file.fileno())
            except OSError:
                _take_back(file, begin, begin + len(data) - len(left))
                raise

    def _rotate(self) -> None:
        if self.path.exists() and self.path.stat().st_size >= self.max_bytes:
            numbers = [number for number, _ in rotated(self.path)]
            self.path.rename(self.path.with_name(f"{self.path.name}.{max(numbers, default=0) + 1}"))


AuditTarget = str | os.PathLike[str] | AuditLog | None


def with_audit(audit: AuditTarget, observers: Iterable[Observer]) -> tuple[Observer, ...]:
    """Return the observers with the audit trail before them, where there is to be one."""
    watching = checked_observers(observers)
    if audit is None:
        return watching
    if isinstance(audit, str | os.PathLike):
        return AuditLog(checks.path("audit", audit)), *watching
    if not isinstance(audit, Observer):
        raise TypeError(checks.wrong("audit", audit, "the path of a file, fedra.audit.AuditLog(...), or None"))
    return audit, *watching


def record_lines(record: RoundRecord, *, lost: int = 0) -> list[str]:
    """Return a round as lines of JSON: one for each client, then one for the round itself.

    `lost` is how many lines before these could not be written, which the round's line then tells.
    """
    place = {"run": record.run, "round": record.round, "phase": record.phase}
    clients = [{"kind": "client", **place, **client} for client in record.clients]
    end: dict[str, Any] = {
        "kind": "round",
        **place,
        "time": record.time,
        "rule": record.rule,
        "num_malicious": record.num_malicious,
        "kept": record.kept,
        "rejected": record.rejected,
        "note": record.note,
    }
    if record.warnings:
        end["warnings"] = list(record.warnings)
    if record.metrics:
        end["metrics"] = dict(record.metrics)
    if lost:
        end["lines_lost"] = lost
    return [json.dumps(line, allow_nan=False) for line in (*clients, end)]


def rotated(path: Path) -> list[tuple[int, Path]]:
    """Return the files that were rotated away from this path, oldest first, with their numbers."""
    pattern = re.compile(re.escape(path.name) + r"\.(\d+)")
    matches = [(pattern.fullmatch(candidate.name), candidate) for candidate in path.parent.iterdir()]
    return sorted((int(match[1]), candidate) for match, candidate in matches if match)


def _torn(path: Path) -> bool:
    if not path.stat().st_size:
        return False
    with open_plain(path, "rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


def _take_back(file: IO[bytes], begin: int, end: int) -> None:
    """Cut off what was written of a round, unless somebody else has appended to the file since."""
    with contextlib.suppress(OSError):
        if os.fstat(file.fileno()).st_size == end:
            file.truncate(begin)
