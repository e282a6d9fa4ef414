"""Live progress of a run: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column

from fedra.cli.console import errors, is_terminal
from fedra.server import Observer, RoundRecord, RunInfo

_SECONDS_BETWEEN_LINES = 5.0
# The widest that everything but label and bar gets, so that a line fits into a terminal of 80 columns.
_FIGURES_WIDTH = 65
# The same without what was caught and missed, for narrower terminals, down to 60 columns.
_NARROW, _NARROW_FIGURES_WIDTH = 80, 45
_LEAST_LABEL, _LEAST_BAR, _MOST_BAR = 11, 4, 24


class _Tally:
    """What has been seen so far."""

    def __init__(self) -> None:
        self.done = 0
        self.caught = self.missed = 0
        self.accuracy: float | None = None
        self._started = time.perf_counter()
        self._first: float | None = None

    def add(self, record: RoundRecord) -> None:
        self.done += 1
        self.caught += int(record.metrics["caught"])
        self.missed += int(record.metrics["missed"])
        self.accuracy = record.metrics.get("accuracy", self.accuracy)
        if self._first is None:
            self._first = time.perf_counter()

    @property
    def rate(self) -> float:
        """Rounds per second, without the first one once there are others: it also compiles."""
        if self._first is None or self.done < 2:
            return self.done / max(time.perf_counter() - self._started, 1e-9)
        return (self.done - 1) / max(time.perf_counter() - self._first, 1e-9)

    def words(self, *, short: bool = False, narrow: bool = False) -> str:
        accuracy = "-" if self.accuracy is None else f"{self.accuracy:.1f}"
        label, unit = ("acc", "/s") if short else ("accuracy", " rounds/s")
        filtered = "" if narrow else f"  caught {self.caught}  missed {self.missed}"
        return f"{label} {accuracy}{filtered}  {self.rate:.1f}{unit}"


@contextmanager
def progress_bar(label: str, rounds: int, *, quiet: bool = False) -> Iterator[tuple[Observer, ...]]:
    """Yield the observers that show how a run goes; `rounds` is the number of the last one.

    There is a bar from the start of the run on: none where there is nothing left to run.
    """
    if quiet:
        yield ()
    elif is_terminal():
        bar = _bar(label)
        try:
            yield (_Moving(bar, label, rounds),)
        finally:
            bar.stop()
    else:
        yield (_Lines(label, rounds),)


def _bar(label: str) -> Progress:
    figures = _NARROW_FIGURES_WIDTH if errors.width < _NARROW else _FIGURES_WIDTH
    left = max(errors.width - figures, 0)
    label_width = min(len(label), max(left - _LEAST_BAR, _LEAST_LABEL))
    return Progress(
        TextColumn("[bold]{task.description}", table_column=Column(no_wrap=True, max_width=label_width)),
        BarColumn(bar_width=min(max(left - label_width, _LEAST_BAR), _MOST_BAR)),
        MofNCompleteColumn(table_column=Column(no_wrap=True)),
        TextColumn("{task.fields[words]}"),
        TimeRemainingColumn(compact=True, table_column=Column(no_wrap=True)),
        TextColumn("left"),
        console=errors,
    )


class _Moving(Observer):
    """Moves a bar."""

    def __init__(self, bar: Progress, label: str, rounds: int) -> None:
        self._bar, self._tally = bar, _Tally()
        self._narrow = errors.width < _NARROW
        self._task = bar.add_task(label, total=rounds, words="")

    def start(self, run: RunInfo) -> None:
        """Draw it, with what an earlier attempt has done."""
        self._bar.update(self._task, completed=run.rounds_done)
        self._bar.start()

    def round(self, record: RoundRecord) -> None:
        """Move it to this round."""
        self._tally.add(record)
        self._bar.update(self._task, completed=record.round, words=self._tally.words(short=True, narrow=self._narrow))


class _Lines(Observer):
    """Prints a line now and then."""

    def __init__(self, label: str, rounds: int) -> None:
        self._label, self._rounds, self._tally = label, rounds, _Tally()
        self._last_line = time.perf_counter()

    def round(self, record: RoundRecord) -> None:
        """Print a line where it is time for one, and for the last round."""
        self._tally.add(record)
        number = record.round
        if number == self._rounds or time.perf_counter() - self._last_line > _SECONDS_BETWEEN_LINES:
            self._last_line = time.perf_counter()
            left = (self._rounds - number) / self._tally.rate
            line = f"{self._label}: round {number}/{self._rounds}  {self._tally.words()}  {left:.0f} s left"
            errors.print(line, soft_wrap=True, markup=False)
