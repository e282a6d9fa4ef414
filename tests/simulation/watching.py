"""Observers that tests put on runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fedra.server import Observer, RoundRecord, RunInfo


class Calling(Observer):
    """Calls a function with each round's record."""

    def __init__(self, call: Callable[[RoundRecord], object]) -> None:
        self._call = call

    def round(self, record: RoundRecord) -> None:
        self._call(record)


class Recording(Observer):
    """Keeps all that it is given."""

    def __init__(self) -> None:
        self.started: list[RunInfo] = []
        self.rounds: list[RoundRecord] = []
        self.ended: list[tuple[RunInfo, Mapping[str, Any]]] = []

    def start(self, run: RunInfo) -> None:
        self.started.append(run)

    def round(self, record: RoundRecord) -> None:
        self.rounds.append(record)

    def end(self, run: RunInfo, summary: Mapping[str, Any]) -> None:
        self.ended.append((run, summary))


def stop_in(number: int) -> Observer:
    """Interrupt a run in the round after so many, which is finished by then."""

    def stop(record: RoundRecord) -> None:
        if record.round == number + 1:
            raise KeyboardInterrupt

    return Calling(stop)
