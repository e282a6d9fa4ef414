"""Live progress of a grid: a table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from fedra.cli.console import errors, is_terminal
from fedra.experiments import Event, Failed, Finished, Tally
from fedra.experiments.tally import Running

_SECONDS_BETWEEN_LINES = 10.0
_MOST_SHOWN = 16

Watch = Callable[[Event], None]


@contextmanager
def shown(tally: Tally, *, quiet: bool = False) -> Iterator[Watch]:
    """Yield what to call with everything that happens."""
    if quiet:
        yield tally.add
    elif is_terminal():
        with Live(get_renderable=lambda: _picture(tally), console=errors, refresh_per_second=2, transient=True):
            yield tally.add
    else:
        yield _lines(tally)


def duration(seconds: float | None) -> str:
    """Return a length of time as people say it."""
    if seconds is None:
        return "unknown"
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def percent(accuracy: float | None) -> str:
    """Return an accuracy, or a dash before the first."""
    return "-" if accuracy is None else f"{accuracy:.1f}"


def _summary(tally: Tally) -> str:
    failed = f", {len(tally.failed)} failed" if tally.failed else ""
    return f"{len(tally.finished)}/{len(tally.runs)} runs done{failed}, time left: {duration(tally.seconds_left)}"


def _picture(tally: Tally) -> Group:
    whole = Table.grid(padding=(0, 2, 0, 0))
    bar = ProgressBar(total=max(1, len(tally.runs)), completed=tally.ended, width=24)
    whole.add_row(bar, Text(_summary(tally), style="bold red" if tally.failed else "bold"))
    running = Table.grid(padding=(0, 2, 0, 0))
    running.add_column(overflow="ellipsis", no_wrap=True)
    for name, state in list(tally.running.items())[:_MOST_SHOWN]:
        accuracy = f"accuracy {percent(state.accuracy)}"
        running.add_row(Text(name), Text(_rounds(tally, name, state), justify="right"), Text(accuracy))
    return Group(whole, running)


def _rounds(tally: Tally, name: str, state: Running) -> str:
    return f"{state.round}/{tally.runs[name].rounds}"


def _lines(tally: Tally) -> Watch:
    told = time.monotonic()

    def say(line: str) -> None:
        nonlocal told
        told = time.monotonic()
        errors.print(line, soft_wrap=True, markup=False)

    def watch(event: Event) -> None:
        tally.add(event)
        if isinstance(event, Finished):
            say(f"done {event.run}: accuracy {percent(event.accuracy)}, {duration(event.seconds)}; {_summary(tally)}")
        elif isinstance(event, Failed):
            say(f"failed {event.run}: {event.error}; {_summary(tally)}")
        elif time.monotonic() - told > _SECONDS_BETWEEN_LINES:
            running = "; ".join(
                f"{name} round {_rounds(tally, name, state)} accuracy {percent(state.accuracy)}"
                for name, state in list(tally.running.items())[:_MOST_SHOWN]
            )
            say(f"running {running}; {_summary(tally)}")

    return watch
