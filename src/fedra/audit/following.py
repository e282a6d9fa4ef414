"""A trail that is being written: each look reads what was added since the last one, across rotations."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedra.audit.reading import LONGEST_LINE, MOST_BYTES, Trail, check_trail, read_line, trail_files
from fedra.untrusted import opened

_MOST_AT_ONCE = 64 * 1024 * 1024


class Follower:
    """Reads a trail from its beginning (of a long one, the latest 512 MiB) and then what is appended to it.

    A line is read when its end has been written. A file is known by its inode, since rotating renames it; one that has
    become shorter, or that somebody put in the place of another, is read from its beginning.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._places: dict[tuple[int, int], int] = {}
        self._texts: dict[str, str] = {}
        self._rounds: list[Mapping[str, Any]] = []
        self._clients: list[Mapping[str, Any]] = []
        self._unreadable = 0
        self._skipped = 0
        self._began = False

    @property
    def trail(self) -> Trail:
        """All that was read so far."""
        return Trail(
            rounds=tuple(self._rounds),
            clients=tuple(self._clients),
            unreadable=self._unreadable,
            skipped_bytes=self._skipped,
        )

    def read(self) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
        """Read what is new; return its lines of rounds and of clients.

        Raises:
            ValueError: where the file is something else than an audit trail, or cannot be read.
        """
        files = trail_files(self.path)
        before, begins = (len(self._rounds), len(self._clients)), not self._began
        if begins:
            self._skip_beginning(files)
            self._began = True
        for file in files:
            self._read_file(file)
        if begins:
            check_trail(self.path, self.trail)
        return self._rounds[before[0] :], self._clients[before[1] :]

    def _skip_beginning(self, files: list[Path]) -> None:
        """Begin such that the latest 512 MiB are read."""
        left = MOST_BYTES
        for file in reversed(files):
            with opened(file) as stream:
                status = os.fstat(stream.fileno())
                begin = max(0, status.st_size - left)
                left -= status.st_size - begin
                if begin:
                    stream.seek(begin - 1)
                    while (block := stream.readline(LONGEST_LINE)) and not block.endswith(b"\n"):
                        pass
                    self._places[status.st_dev, status.st_ino] = stream.tell()
                    self._skipped += stream.tell()

    def _read_file(self, file: Path) -> None:
        with opened(file) as stream:
            status = os.fstat(stream.fileno())
            key = status.st_dev, status.st_ino
            begin = self._places.get(key, 0)
            if status.st_size < begin:
                begin = 0
            stream.seek(begin)
            while block := stream.read(_MOST_AT_ONCE):
                end = block.rfind(b"\n") + 1
                if not end:
                    if len(block) < _MOST_AT_ONCE:
                        break
                    # A line that long is none of a strategy's; where it goes on, it is counted again.
                    end = len(block)
                begin += end
                for line in block[:end].split(b"\n"):
                    if line := line.strip():
                        self._take(line)
                stream.seek(begin)
            self._places[key] = begin

    def _take(self, line: bytes) -> None:
        record = read_line(line, self._texts) if len(line) <= LONGEST_LINE else None
        if record is None:
            self._unreadable += 1
        elif record["kind"] == "client":
            self._clients.append(record)
        else:
            self._rounds.append(record)
