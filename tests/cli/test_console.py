"""What users see: tables with and without a terminal, and errors in a line."""

from __future__ import annotations

import contextlib
import io
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from rich.console import Console
from rich.table import Table

from fedra import checks
from fedra.cli import console
from fedra.cli.console import errors_reported, interruptible, print_table


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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_request_to_stop_is_an_interrupt_and_afterwards_what_it_was(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), interruptible():
        signal.raise_signal(number)
    assert signal.getsignal(number) is before


def lose_an_interrupt(done: list[str]) -> None:
    with interruptible() as check:
        check()
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        done.append("went on")
        check()
        done.append("never")


def test_an_interrupt_that_is_dropped_comes_again() -> None:
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        lose_an_interrupt(done)
    assert done == ["went on"]


def test_one_that_is_dropped_and_never_asked_for_comes_at_the_end() -> None:
    with pytest.raises(KeyboardInterrupt), interruptible(), contextlib.suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def compile_something(*, interrupted: bool) -> None:
    with interruptible():
        try:
            if interrupted:
                signal.raise_signal(signal.SIGINT)
        finally:
            raise SystemError("a compiler failed")


@pytest.mark.parametrize(("interrupted", "raised"), [(True, KeyboardInterrupt), (False, SystemError)])
def test_an_error_made_of_an_interrupt_is_one(interrupted: bool, raised: type[BaseException]) -> None:
    with pytest.raises(raised):
        compile_something(interrupted=interrupted)


def test_where_ctrl_c_is_ignored_it_stays_so() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interruptible():
            signal.raise_signal(signal.SIGINT)
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_in_another_thread_signals_are_left_alone() -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    during = []

    def work() -> None:
        with interruptible() as check:
            check()
            during.append((signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert during == [before]
