"""Whoever watches a run: progress bars, audit trails and trackers, all by the same three calls."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, ClassVar

from fedra.checks import display_value, wrong
from fedra.server.records import RoundRecord
from fedra.untrusted import clipped


@dataclass(frozen=True, kw_only=True)
class RunInfo:
    """What is known of a run when it starts.

    Attributes:
        run: its identifier, the same in all its records.
        platform: "simulation", "flower" or "nvflare".
        rule: the rule, as text.
        rounds: how many it is to have; None where only the platform knows.
        rounds_done: how many were done before, where it is resumed.
        settings: its configuration as plain values.
        folder: where it keeps its files; None where it has no folder.
    """

    run: str
    platform: str
    rule: str
    rounds: int | None = None
    rounds_done: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    folder: str | None = None


class Observer:
    """Watches a run; each method may be left as it is.

    An observer holds nothing but settings until `start`, so that it can be sent to another process, and may be started
    again after `end`. `label` is what messages call it. What it raises is logged, once in a run, and does not stop the
    run, but for KeyboardInterrupt and its like. Records are shared with other observers: read them, do not change them.
    """

    label: ClassVar[str] = ""

    def start(self, run: RunInfo) -> None:
        """Get ready: a run begins, or goes on where it was stopped."""

    def round(self, record: RoundRecord) -> None:
        """Take a round in, after the model that it led to has been saved."""

    def end(self, run: RunInfo, summary: Mapping[str, Any]) -> None:
        """Finish: the run is done, with these figures, or was stopped, with none."""


def checked_observers(observers: Iterable[Observer]) -> tuple[Observer, ...]:
    """Return the observers that a caller gave, or raise TypeError for what are none."""
    wanted = "a list of instances of fedra.server.Observer"
    if isinstance(observers, str | Observer):
        raise TypeError(wrong("observers", observers, wanted))
    try:
        found = tuple(observers)
    except TypeError as error:  # an array without dimensions says only here that there is nothing in it
        raise TypeError(wrong("observers", observers, wanted)) from error
    for place, observer in enumerate(found):
        if not isinstance(observer, Observer):
            raise TypeError(wrong(f"observers[{place}]", observer, "instances of fedra.server.Observer"))
    return found


class Observers:
    """Several observers as one: what one of them raises reaches neither the others nor the run.

    Args:
        observers: who watches.
        logger: where it is said that one of them failed.
        on_disk_error: called with what failed and the OSError; None: as any other error.
    """

    def __init__(
        self,
        observers: Iterable[Observer] = (),
        *,
        logger: logging.Logger | None = None,
        on_disk_error: Callable[[str, OSError], None] | None = None,
    ) -> None:
        self._all = checked_observers(observers)
        if len({id(observer) for observer in self._all}) < len(self._all):
            raise ValueError(f"observers={display_value(self._all)} has one of them twice; give each once")
        self._watching: list[Observer] = []
        self._failures: dict[int, int] = {}
        self._logger = logger or logging.getLogger("fedra")
        self._on_disk_error = on_disk_error

    def __len__(self) -> int:
        return len(self._all)

    def start(self, run: RunInfo) -> None:
        """Start them all; one that cannot start does not watch this run."""
        self._watching, self._failures = [], {}
        for observer in self._all:
            if self._attempt(observer, lambda o: o.start(run)):
                # One by one: should the next be interrupted, `end` still reaches those that have started.
                self._watching.append(observer)

    def round(self, record: RoundRecord) -> None:
        """Hand on a round."""
        for observer in self._watching:
            self._attempt(observer, lambda o: o.round(record))

    def end(self, run: RunInfo, summary: Mapping[str, Any]) -> None:
        """Let them all finish, even where one of them is interrupted."""
        watching, self._watching = self._watching, []
        with ExitStack() as stack:
            for observer in reversed(watching):
                # Each has a summary of its own to change.
                stack.callback(self._attempt, observer, lambda o: o.end(run, dict(summary)))
        for observer in watching:
            if (count := self._failures.get(id(observer), 0)) > 1:
                self._logger.warning(
                    "fedra: %s failed %d times in this run", observer.label or type(observer).__name__, count
                )

    def _attempt(self, observer: Observer, call: Callable[[Observer], None]) -> bool:
        try:
            call(observer)
        except Exception as error:  # somebody's code, which must not cost the run
            self._report(observer, error)
            return False
        return True

    def _report(self, observer: Observer, error: Exception) -> None:
        """Say that an observer failed, once in a run: a full disk fails in every round."""
        name = observer.label or type(observer).__name__
        if isinstance(error, OSError) and self._on_disk_error is not None:
            self._on_disk_error(name, error)
            return
        self._failures[id(observer)] = self._failures.get(id(observer), 0) + 1
        if self._failures[id(observer)] == 1:
            reason = f"{type(error).__name__}: {clipped(error)}"
            self._logger.warning("fedra: %s failed, the run continues: %s", name, reason)
