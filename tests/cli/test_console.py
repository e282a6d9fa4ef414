"""What users see: tables with and without a terminal, and errors in a line."""

from __future__ import annotations

import io
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from rich.console import Console
from rich.table import Table

from fedra import checks
from fedra.cli import console
from fedra.cli.console import errors_reported, print_table, terminated_as_interrupted


def raising(error: Exception) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("fail", "message"),
    [
        (lambda: checks.number("lr", "fast"), "error: lr='fast'; give a finite number\n"),
        (lambda: checks.whole("rounds", 0, 1), "error: rounds=0; give a whole number of at least 1\n"),
        (
            lambda: Path("/nowhere/at/all").read_text(),
            "error: [Errno 2] No such file or directory: '/nowhere/at/all'\n",
        ),
    ],
)
def test_a_wrong_kind_a_wrong_value_and_a_wrong_path_are_one_line(
    fail: Callable[[], None], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as caught, errors_reported():
        fail()
    assert caught.value.exit_code == 2
    assert capsys.readouterr() == ("", message)


def test_a_terminal_gets_nothing_to_obey(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit), errors_reported():
        raise OSError("[bold]one\x1b[2J\ntwo\x07")
    assert capsys.readouterr().err == "error: [bold]one [2J\ntwo\n"


@pytest.mark.parametrize("error", [ValueError("own"), TypeError("own")])
def test_an_error_in_a_users_own_code_goes_through(error: Exception) -> None:
    with pytest.raises(type(error), match="own"), errors_reported():
        raising(error)()


def test_other_errors_are_bugs_and_go_through() -> None:
    with pytest.raises(ZeroDivisionError), errors_reported():
        _ = 1 / 0


def printed(monkeypatch: pytest.MonkeyPatch, *, terminal: bool) -> str:
    text = io.StringIO()
    monkeypatch.setattr(console, "console", Console(file=text, width=40, force_terminal=terminal, color_system=None))
    table = Table("name", "value", title="Title")
    table.add_row("a", "long " * 30)
    print_table(table)
    return text.getvalue()


def test_a_table_is_framed_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    framed = printed(monkeypatch, terminal=True)
    assert "Title" in framed
    assert "┃" in framed
    assert printed(monkeypatch, terminal=False) == ""
    header, line = capsys.readouterr().out.splitlines()
    assert header.split() == ["name", "value"]
    assert line.split() == ["a", *["long"] * 30]


def test_sigterm_is_an_interrupt_and_afterwards_what_it_was() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), terminated_as_interrupted():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before
