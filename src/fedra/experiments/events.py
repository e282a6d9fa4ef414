"""What an engine tells while it runs cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Started:
    """A run has begun, or gone on from a checkpoint."""

    run: str


@dataclass(frozen=True, kw_only=True)
class Advanced:
    """A run has finished `round` rounds; `accuracy` is the last one measured, in percent."""

    run: str
    round: int
    accuracy: float | None


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A run is complete and its folder written; `seconds` are those of this attempt."""

    run: str
    accuracy: float | None
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Failed:
    """A run ended with an error, in one line and in full."""

    run: str
    error: str
    trace: str


Event = Started | Advanced | Finished | Failed
Report = Callable[[Event], None]
