"""Reading an audit trail back, rotated files first: lines that are not as a strategy writes them are only counted."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

from fedra.audit.gaps import Gap, find_gaps
from fedra.audit.log import rotated
from fedra.checks import is_number, is_whole
from fedra.untrusted import MEBIBYTE, opened, parsed_json

# A reply's line has a few hundred bytes.
LONGEST_LINE = MEBIBYTE
MOST_BYTES = 512 * MEBIBYTE
_GIVE = "give the file that `audit=` of the strategy or aggregator names, such as audit.jsonl"


@dataclass(frozen=True, kw_only=True)
class Trail:
    """All rounds and client records of a trail, in the order they were written, and how many lines were unreadable.

    `skipped_bytes` is how much was not looked at since the trail is longer than 512 MiB: the latest are.
    """

    rounds: tuple[Mapping[str, Any], ...]
    clients: tuple[Mapping[str, Any], ...]
    unreadable: int
    skipped_bytes: int = 0

    @property
    def lost(self) -> int:
        """How many lines the disk did not take, as the rounds that followed say."""
        return sum(round_.get("lines_lost", 0) for round_ in self.rounds)

    @cached_property
    def gaps(self) -> tuple[Gap, ...]:
        """The training rounds that the trail lacks."""
        return tuple(find_gaps(self.rounds, whole=not self.skipped_bytes))


def read_trail(path: str | os.PathLike[str]) -> Trail:
    """Read a trail and the files rotated away from it; a line that is torn or not as it should be is counted."""
    files = trail_files(path)
    rounds: list[Mapping[str, Any]] = []
    clients: list[Mapping[str, Any]] = []
    unreadable = 0
    begins = _begins(files)
    texts: dict[str, str] = {}
    for file, begin in begins.items():
        for line in _lines(file, begin):
            record = None if line is None else read_line(line, texts)
            if record is None:
                unreadable += 1
            elif record["kind"] == "client":
                clients.append(record)
            else:
                rounds.append(record)
    return Trail(
        rounds=tuple(rounds), clients=tuple(clients), unreadable=unreadable, skipped_bytes=sum(begins.values())
    )


def trail_files(path: str | os.PathLike[str]) -> list[Path]:
    """Return the files of a trail, oldest first; an error that says what to give where there is none."""
    current = Path(path)
    if current.is_dir():
        raise ValueError(f"{current} is a folder, not an audit trail; {_instead(current)}")
    files = [file for _, file in rotated(current)] if current.parent.is_dir() else []
    if os.path.lexists(current):
        files.append(current)
    if not files:
        raise FileNotFoundError(f"no audit trail at {current}; {_GIVE}")
    return files


def check_trail(path: str | os.PathLike[str], trail: Trail) -> None:
    """Raise where a file has lines, and not one of them is one of a trail; a trail without lines has just begun."""
    if trail.unreadable and not trail.rounds and not trail.clients:
        lines = f"its {trail.unreadable} lines are" if trail.unreadable > 1 else "its one line is"
        raise ValueError(f"{Path(path)} is not an audit trail: {lines} not as fedra writes them; {_GIVE}")


def _instead(folder: Path) -> str:
    """Return what to do about a folder."""
    if (folder / "config.toml").is_file() or (folder / "results.csv").is_file():
        return f"it holds simulated runs: fedra report {folder}"
    found = sorted(file.name for file in folder.glob("*.jsonl") if file.is_file())
    if not found:
        return _GIVE
    return f"give a file, such as {folder / found[0]}"


def _begins(files: list[Path]) -> dict[Path, int]:
    """Return where to begin in each file, such that the latest 512 MiB are read."""
    left = MOST_BYTES
    begins: dict[Path, int] = {}
    for file in reversed(files):
        with opened(file) as stream:
            size = os.fstat(stream.fileno()).st_size
        begins[file] = max(0, size - left)
        left -= size - begins[file]
    return dict(reversed(begins.items()))


def _lines(file: Path, begin: int) -> Iterator[bytes | None]:
    """Yield the lines of a file that are not empty; None for one that is too long to be one of a strategy's."""
    with opened(file) as stream:
        if begin:
            stream.seek(begin - 1)
            _to_line_end(stream)
        # A strategy may be appending, and a file need not have the size that it states.
        left = MOST_BYTES
        while left > 0 and (line := stream.readline(LONGEST_LINE + 1)):
            left -= len(line)
            if len(line) > LONGEST_LINE and not line.endswith(b"\n"):
                left -= _to_line_end(stream)
                yield None
            elif line := line.strip():
                yield line


def _to_line_end(stream: BinaryIO) -> int:
    """Go past the end of the line and return how many bytes that was."""
    passed = 0
    while block := stream.readline(LONGEST_LINE):
        passed += len(block)
        if block.endswith(b"\n"):
            break
    return passed


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) or is_whole(value, least=-(2**63), most=2**64 - 1)


def _is_switch(value: Any) -> bool:
    return isinstance(value, bool)


def _is_amount(value: Any) -> bool:
    return value is None or is_number(value)


def _is_count(value: Any) -> bool:
    return value is None or is_whole(value)


_PLACE: dict[str, Callable[[Any], bool]] = {"run": _is_name, "round": is_whole, "phase": _is_text}
_NEEDED: dict[str, dict[str, Callable[[Any], bool]]] = {
    "client": {
        **_PLACE,
        "client": _is_name,
        "usable": _is_switch,
        "kept": _is_switch,
        "reason": _is_text,
        "claimed_quantity": _is_amount,
    },
    "round": {**_PLACE, "rule": _is_text, "kept": is_whole, "rejected": is_whole, "note": _is_text},
}
_OPTIONAL: dict[str, dict[str, Callable[[Any], bool]]] = {
    "client": dict.fromkeys(("implied_quantity", "score", "cut", "weight"), _is_amount),
    "round": {
        "time": _is_amount,
        "num_malicious": _is_count,
        "lines_lost": is_whole,
        "warnings": lambda value: isinstance(value, list) and all(map(_is_text, value)),
    },
}


def read_line(line: bytes, texts: dict[str, str]) -> dict[str, Any] | None:
    """Return what of a line a summary looks at, each of the right kind; None where the line is unreadable."""
    try:
        record = parsed_json(line)
    except ValueError:
        return None
    if not isinstance(record, dict) or record.get("kind") not in ("client", "round"):
        return None
    needed, optional = _NEEDED[record["kind"]], _OPTIONAL[record["kind"]]
    if not all(name in record and check(record[name]) for name, check in needed.items()):
        return None
    if not all(check(record[name]) for name, check in optional.items() if name in record):
        return None
    # What else a line says is nobody's business here, and names and reasons are the same again and again.
    return {
        name: texts.setdefault(value, value) if isinstance(value, str) else value
        for name, value in record.items()
        if name in needed or name in optional or name == "kind"
    }
