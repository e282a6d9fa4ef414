"""What all trackers share: where their files go, and which names, numbers and texts reach a tool.

Metric names, client names, notes and warnings may come from clients, so they are hostile: names are reduced to plain
characters and bounded in number, numbers are finite, texts are one line each and clipped.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from fedra.checks import is_number, wrong
from fedra.files import folder_inside
from fedra.server.observers import Observer, RunInfo
from fedra.server.records import RoundRecord
from fedra.untrusted import clipped, encodable

# What one run may bring into a tool, however many metrics and warnings its clients think of.
MOST_METRICS = 200
MOST_SETTINGS = 200
MOST_LINES = 20
_LONGEST_NAME = 100
_LONGEST_RUN = 60
_DEEPEST_SETTING = 4

_NAME = re.compile(r"\w[\w. -]*(/\w[\w. -]*)*")
_RUN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")

_logger = logging.getLogger("fedra")


class Session:
    """One run in a tracking tool, from its start to its end; all that it is given is harmless."""

    def numbers(self, values: Mapping[str, float], *, step: int, time: float) -> None:
        """Add a round's finite numbers by tag."""
        raise NotImplementedError

    def texts(self, tag: str, lines: Sequence[str], *, step: int, time: float) -> None:
        """Add lines of text that belong to a round."""
        raise NotImplementedError

    def finish(self, numbers: Mapping[str, float], texts: Mapping[str, str]) -> None:
        """Add what the whole run led to; nothing of both where it was stopped."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of files and processes."""
        raise NotImplementedError


@dataclass(kw_only=True, eq=False)
class Tracker(Observer):
    """An observer that brings the numbers, notes and warnings of rounds into a tool.

    Attributes:
        folder: where the tool's files go; None: a folder of the tracker's name in the run's folder, or in
            runs/tracking where the run has none.
    """

    name: ClassVar[str]
    library: ClassVar[str]

    folder: str | os.PathLike[str] | None = None
    _session: Session | None = field(default=None, init=False, repr=False)
    _metrics: set[str] = field(default_factory=set, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.folder is not None and (not isinstance(self.folder, str | os.PathLike) or not os.fspath(self.folder)):
            raise TypeError(wrong("folder", self.folder, "the name of a folder, as a text or a path"))
        # Now, not in `start`: a run does not stop for an observer that cannot start.
        if importlib.util.find_spec(self.library) is None:
            raise ModuleNotFoundError(
                f"tracker {self.name!r} needs the library {self.library!r}, which is not installed; "
                f"install with pip install 'fedra[{self.name}]'",
                name=self.library,
            )

    def __getstate__(self) -> dict[str, Any]:
        # Settings only: what is open stays with the process that opened it.
        return {**self.__dict__, "_session": None, "_metrics": set()}

    def open(self, run: RunInfo, folder: Path) -> Session:
        """Return the tool's side of a run, a new one or the one that goes on; `folder` is there."""
        raise NotImplementedError

    def start(self, run: RunInfo) -> None:
        """Open the run in the tool."""
        self._close()
        self._metrics = set()
        self._session = self.open(run, self._place(run))

    def round(self, record: RoundRecord) -> None:
        """Add a round's numbers as phase/name, and its note and warnings as text."""
        if self._session is None:
            return
        phase = tag_of(record.phase)
        figures = {f"{phase}/{tag_of(name)}": value for name, value in self._figures(record)}
        self._session.numbers(figures, step=record.round, time=record.time)
        lines = text_lines([record.note, *record.warnings] if record.note else record.warnings)
        if lines:
            self._session.texts(f"{phase}/messages", lines, step=record.round, time=record.time)

    def end(self, run: RunInfo, summary: Mapping[str, Any]) -> None:
        """Add what the run led to, and close it in the tool."""
        if self._session is None:
            return
        try:
            # Not the tables in it, such as the configuration, which the tool has from the start.
            values = dict(islice(summary.items(), MOST_SETTINGS))
            numbers = {tag_of(name): float(value) for name, value in values.items() if is_number(value)}
            texts = {
                tag_of(name): clipped(encodable(str(value)))
                for name, value in values.items()
                if isinstance(value, str | bool)
            }
            self._session.finish(numbers, texts)
        finally:
            self._close()

    def _close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def _figures(self, record: RoundRecord) -> Iterator[tuple[str, float]]:
        """Yield a round's finite numbers; the server's own are few, those of clients are bounded."""
        for name, value in record.figures().items():
            if not is_number(value):
                continue
            if name in record.metrics and name not in self._metrics:
                if len(self._metrics) >= MOST_METRICS:
                    continue
                self._metrics.add(name)
                if len(self._metrics) == MOST_METRICS:
                    _logger.warning(
                        "fedra: %s: the run has %d metrics, the most that are tracked; any others are left out",
                        type(self).__name__,
                        MOST_METRICS,
                    )
            yield name, float(value)

    def _place(self, run: RunInfo) -> Path:
        if self.folder is not None:
            place = Path(self.folder)
            place.mkdir(parents=True, exist_ok=True)
            return place
        root = Path("runs", "tracking") if run.folder is None else Path(run.folder)
        root.mkdir(parents=True, exist_ok=True)
        # The run's folder may be somebody else's, with a link where the tracker would write.
        return folder_inside(root, self.name)


def tag_of(name: str) -> str:
    """Return a name that every tool takes; one that had to be changed ends in a hash, so that no two become one."""
    if len(name) <= _LONGEST_NAME and _NAME.fullmatch(name):
        return name
    return _changed(re.sub(r"\W+", "_", name[:_LONGEST_NAME]), name)


def run_name(run: RunInfo) -> str:
    """Return a run's identifier as the name of a file: plain letters, and the same each time."""
    if len(run.run) <= _LONGEST_RUN and _RUN.fullmatch(run.run):
        return run.run
    return _changed(re.sub(r"[^A-Za-z0-9]+", "_", run.run[:_LONGEST_RUN]), run.run)


def text_lines(texts: Sequence[str]) -> list[str]:
    """Return the first of some texts, each on one line and clipped, and how many there are more."""
    lines = [clipped(encodable(str(text))) for text in texts[:MOST_LINES]]
    return lines if len(texts) <= MOST_LINES else [*lines, f"and {len(texts) - MOST_LINES} more"]


def settings_of(run: RunInfo) -> dict[str, str]:
    """Return what is known of a run when it starts, as short texts by plain names, the first MOST_SETTINGS of them."""
    known: dict[str, Any] = {"run": run.run, "platform": run.platform, "rule": run.rule, "rounds": run.rounds}
    everything = {**dict(flat(run.settings)), **known}
    ordered = [*known, *(name for name in everything if name not in known)]
    return {tag_of(name): clipped(encodable(str(everything[name]))) for name in ordered[:MOST_SETTINGS]}


def flat(values: Mapping[str, Any], prefix: str = "", depth: int = 1) -> Iterator[tuple[str, Any]]:
    """Yield what a table holds, tables in it by outer.inner names."""
    for name, value in values.items():
        full = f"{prefix}{name}"
        if isinstance(value, Mapping) and depth < _DEEPEST_SETTING:
            yield from flat(value, f"{full}.", depth + 1)
        else:
            yield full, value


def _changed(readable: str, original: str) -> str:
    digest = hashlib.sha256(original.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{readable.strip('_') or 'name'}-{digest}"
