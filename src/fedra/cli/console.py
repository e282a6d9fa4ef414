"""What all commands share: consoles, tables, and reporting an error in one line instead of a traceback."""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import fedra
from fedra.untrusted import one_line

console = Console(highlight=False)
errors = Console(stderr=True, highlight=False)

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
def terminated_as_interrupted() -> Iterator[None]:
    """Let SIGTERM do as Ctrl-C: a killed run resumes from its last checkpoint, one asked to stop writes one first."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
