"""Whoever watches a run: progress bars, audit trails and trackers, all by the same three calls."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from fedra.server.records import RoundRecord


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
    again after `end`. `label` is what messages call it. What it raises is logged and does not stop the run, but for
    KeyboardInterrupt and its like.
    """

    label: ClassVar[str] = ""

    def start(self, run: RunInfo) -> None:
        """Get ready: a run begins, or goes on where it was stopped."""

    def round(self, record: RoundRecord) -> None:
        """Take a round in, after the model that it led to has been saved."""

    def end(self, run: RunInfo, summary: Mapping[str, Any]) -> None:
        """Finish: the run is done, with these figures, or was stopped, with none."""


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
        self._all = tuple(observers)
        for observer in self._all:
            if not isinstance(observer, Observer):
                raise TypeError(f"observer {observer!r}; give instances of fedra.server.Observer")
        self._watching: list[Observer] = []
        self._logger = logger or logging.getLogger("fedra")
        self._on_disk_error = on_disk_error

    def __len__(self) -> int:
        return len(self._all)

    def start(self, run: RunInfo) -> None:
        """Start them all; one that cannot start does not watch this run."""
        self._watching = [observer for observer in self._all if self._attempt(observer, lambda o: o.start(run))]

    def round(self, record: RoundRecord) -> None:
        """Hand on a round."""
        for observer in self._watching:
            self._attempt(observer, lambda o: o.round(record))

    def end(self, run: RunInfo, summary: Mapping[str, Any]) -> None:
        """Let them all finish."""
        watching, self._watching = self._watching, []
        for observer in watching:
            self._attempt(observer, lambda o: o.end(run, summary))

    def _attempt(self, observer: Observer, call: Callable[[Observer], None]) -> bool:
        name = observer.label or type(observer).__name__
        try:
            call(observer)
        except OSError as error:
            if self._on_disk_error is None:
                self._logger.warning("fedra: %s failed, the run goes on: %s", name, error)
            else:
                self._on_disk_error(name, error)
            return False
        except Exception as error:  # somebody's code, which must not cost the run
            self._logger.warning("fedra: %s failed, the run goes on: %s: %s", name, type(error).__name__, error)
            return False
        return True
