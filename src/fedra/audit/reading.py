"""Reading an audit trail back, rotated files first."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedra.audit.log import rotated

_CLIENT_KEYS = {"run", "round", "phase", "client", "usable", "kept", "reason", "claimed_quantity"}
_ROUND_KEYS = {"run", "round", "phase", "rule", "kept", "rejected", "note"}


@dataclass(frozen=True, kw_only=True)
class Trail:
    """All rounds and client records of a trail, in the order they were written, and how many lines were unreadable."""

    rounds: tuple[Mapping[str, Any], ...]
    clients: tuple[Mapping[str, Any], ...]
    unreadable: int

    @property
    def lost(self) -> int:
        """How many lines the disk did not take, as the rounds that followed say."""
        told = (round_.get("lines_lost") for round_ in self.rounds)
        return sum(count for count in told if isinstance(count, int))


def read_trail(path: str | os.PathLike[str]) -> Trail:
    """Read a trail and the files rotated away from it; a torn line is counted, not fatal."""
    current = Path(path)
    files = [file for _, file in rotated(current) if file.is_file()] if current.parent.is_dir() else []
    if current.exists():
        files.append(current)
    if not files:
        raise FileNotFoundError(f"no audit trail at {current}; give the path that the strategy's `audit` was given")
    rounds: list[Mapping[str, Any]] = []
    clients: list[Mapping[str, Any]] = []
    unreadable = 0
    for file in files:
        with file.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                record = _record(line)
                if record is None:
                    unreadable += bool(line.strip())
                elif record["kind"] == "client":
                    clients.append(record)
                else:
                    rounds.append(record)
    return Trail(rounds=tuple(rounds), clients=tuple(clients), unreadable=unreadable)


def _record(line: str) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    if not isinstance(record, dict):
        return None
    needed = {"client": _CLIENT_KEYS, "round": _ROUND_KEYS}.get(str(record.get("kind")))
    return record if needed and needed <= record.keys() else None
