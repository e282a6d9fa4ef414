"""What all commands share: consoles, tables, and reporting an error in one line instead of a traceback."""

from __future__ import annotations

import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import ParamSpec

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import fedra
from fedra.untrusted import one_line

console = Console(highlight=False)
errors = Console(stderr=True, highlight=False)

Arguments = ParamSpec("Arguments")
SECONDS_BETWEEN_LINES = 5.0

_PACKAGE = Path(fedra.__file__).parent
_PLAIN_WIDTH = 10_000


@contextmanager
def errors_reported() -> Iterator[None]:
    """Turn a wrong name, value or path into one line on stderr and exit code 2; errors in own code go through."""
    try:
        yield
    except (ValueError, TypeError, OSError, OverflowError) as error:
        # Raised by a user's own rule, attack or data set it is no slip of the command line, and its place matters.
        raised_in = Path(traceback.extract_tb(error.__traceback__)[-1].filename)
        if not isinstance(error, OSError) and not raised_in.is_relative_to(_PACKAGE):
            raise
        # What the message repeats may come from a file or a server, and a terminal obeys control characters.
        message = "\n".join(map(one_line, str(error).splitlines()))
        errors.print(f"[bold red]error:[/] {escape(message)}", soft_wrap=True)
        raise typer.Exit(2) from None


def print_table(table: Table) -> None:
    """Print a table: in a frame on a terminal, elsewhere as plain lines that are never wrapped."""
    if console.is_terminal:
        console.print(table)
        return
    table.box, table.title, table.pad_edge = None, None, False
    Console(width=_PLAIN_WIDTH, highlight=False).print(table)


def is_terminal() -> bool:
    """Whether errors and progress go to a terminal, so that a live display makes sense."""
    return sys.stderr.isatty()


@contextmanager
def interruptible() -> Iterator[Callable[[], None]]:
    """Let Ctrl-C and SIGTERM end what is inside with KeyboardInterrupt, and yield what to call now and then.

    An interrupt may fall into code that drops it (a finalizer, a callback from C) or makes another error of it (a
    compiler). What is yielded raises one that was dropped again; an error that follows one is taken for it. A SIGTERM
    is a request to stop: a killed run resumes from its last checkpoint, one asked to stop writes one first. Where
    Ctrl-C is ignored it stays so. Signals belong to the main thread: in another one nothing changes.
    """
    asked = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        asked = True
        raise KeyboardInterrupt

    def check() -> None:
        if asked:
            raise KeyboardInterrupt

    numbers = [signal.SIGTERM, signal.SIGINT] if threading.current_thread() is threading.main_thread() else []
    found = {number: signal.getsignal(number) for number in numbers}
    # None: a handler that is not Python's, and could not be put back.
    before = {
        number: handler
        for number, handler in found.items()
        if handler is not None and (number, handler) != (signal.SIGINT, signal.SIG_IGN)
    }
    for number in before:
        signal.signal(number, ask)
    try:
        yield check
        check()
    except Exception:
        check()
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def now_and_then(line: Callable[Arguments, str]) -> Callable[Arguments, None]:
    """Return what prints a line on stderr, made of what it is called with, at most every few seconds."""
    last = time.monotonic()

    def step(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        nonlocal last
        if time.monotonic() - last > SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            errors.print(line(*args, **kwargs), soft_wrap=True, markup=False)

    return step
