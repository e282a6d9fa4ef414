"""Rounds that a trail lacks: a server that stops between saving its model and writing the trail leaves one out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Gap:
    """Training rounds `first` to `last` that a run must have had, since it went on after them, and has no line of."""

    run: str
    first: int
    last: int

    @property
    def count(self) -> int:
        """How many rounds are missing."""
        return self.last - self.first + 1

    def __str__(self) -> str:
        return f"round {self.first}" if self.first == self.last else f"rounds {self.first} to {self.last}"


def find_gaps(rounds: Iterable[Mapping[str, Any]], *, whole: bool = True) -> list[Gap]:
    """Return what is missing, in the order of the trail.

    A server that is started again goes on counting under the name of a new run: such a run is expected to begin where
    the trail stopped, or anew.

    Args:
        rounds: lines of rounds, in the order they were written.
        whole: whether they are all that the trail has; else nothing is known of what came before the first.
    """
    found: list[Gap] = []
    last: dict[Any, int] = {}
    before: int | None = 0 if whole else None
    for line in rounds:
        if line["phase"] != "train":
            continue
        run, number = line["run"], line["round"]
        previous = last.get(run, before)
        if previous is not None and number > previous + 1:
            found.append(Gap(run=str(run), first=previous + 1, last=number - 1))
        last[run] = before = number
    return found
