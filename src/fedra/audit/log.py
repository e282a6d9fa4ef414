"""The file of the audit trail: JSON Lines, appended to and never rewritten."""

from __future__ import annotations

import os
import re
from pathlib import Path

from fedra.audit.rounds import RoundReport

_MEBIBYTE = 1024 * 1024


class AuditLog:
    """Appends rounds to a file of JSON lines; each round is one write, on disk before `write` returns.

    A file that has reached `max_bytes` is renamed to ``FILE.1``, ``FILE.2``, ... (the highest number is the latest),
    and a new one begun. Nothing is ever deleted.
    """

    def __init__(self, path: str | os.PathLike[str], *, max_bytes: int = 64 * _MEBIBYTE) -> None:
        if isinstance(max_bytes, bool) or not isinstance(max_bytes, int) or max_bytes < 1:
            raise ValueError(f"max_bytes={max_bytes!r}; give a whole number of bytes, at least 1")
        self.path = Path(path)
        self.max_bytes = max_bytes
        self.path.parent.mkdir(parents=True, exist_ok=True)

    def write(self, report: RoundReport) -> None:
        """Append one round."""
        self._rotate()
        data = "".join(f"{line}\n" for line in report.lines()).encode()
        with self.path.open("ab") as file:
            # A server that was killed while writing left half a line; what follows must not be glued to it.
            if _torn(self.path):
                data = b"\n" + data
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def _rotate(self) -> None:
        if self.path.exists() and self.path.stat().st_size >= self.max_bytes:
            numbers = [number for number, _ in rotated(self.path)]
            self.path.rename(self.path.with_name(f"{self.path.name}.{max(numbers, default=0) + 1}"))


def rotated(path: Path) -> list[tuple[int, Path]]:
    """Return the files that were rotated away from this path, oldest first, with their numbers."""
    pattern = re.compile(re.escape(path.name) + r"\.(\d+)")
    matches = [(pattern.fullmatch(candidate.name), candidate) for candidate in path.parent.iterdir()]
    return sorted((int(match[1]), candidate) for match, candidate in matches if match)


def _torn(path: Path) -> bool:
    if not path.stat().st_size:
        return False
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"
