from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from fedra.cli import progress
from fedra.server import RoundRecord, RunInfo


def record(number: int, **measured: float) -> RoundRecord:
    return RoundRecord(
        run="r",
        round=number,
        phase="train",
        time=0.0,
        rule="fedra",
        num_malicious=5,
        note="",
        clients=(),
        metrics={"caught": 4.0, "missed": 1.0, **measured},
    )


def lines_of(monkeypatch: pytest.MonkeyPatch, *, width: int, terminal: bool, label: str, total: int = 2) -> list[str]:
    """Return all that is shown in a run of so many rounds."""
    text = io.StringIO()
    console = Console(file=text, width=width, force_terminal=terminal, color_system=None, legacy_windows=False)
    monkeypatch.setattr(progress, "errors", console)
    monkeypatch.setattr(progress, "is_terminal", lambda: terminal)
    with progress.progress_bar(label, total) as (observer,):
        observer.start(RunInfo(run="r", platform="simulation", rule="fedra", rounds=total))
        for number in range(1, total + 1):
            observer.round(record(number, **({"accuracy": 94.71} if number == total else {})))
    return [line for line in text.getvalue().replace("\r", "\n").splitlines() if line.strip()]


@pytest.mark.parametrize("width", [80, 100, 140])
@pytest.mark.parametrize("label", ["fedra / lie", "multi-krum / label-flip"])
def test_the_bar_fits_its_terminal_and_shows_every_figure(
    monkeypatch: pytest.MonkeyPatch, width: int, label: str
) -> None:
    lines = lines_of(monkeypatch, width=width, terminal=True, label=label, total=1500)
    shown = re.sub(r"\x1b\[[?\d]*\w", "", next(line for line in reversed(lines) if "left" in line))
    assert len(shown) <= width
    for figure in ("1500/1500", "acc 94.7", "caught 6000", "missed 1500", "/s", "left"):
        assert figure in shown, shown
    assert shown.count("…") <= 1
    if width >= 100:
        assert label in shown


@pytest.mark.parametrize("width", [60, 66, 79])
@pytest.mark.parametrize("label", ["fedra / lie", "multi-krum / label-flip"])
def test_on_a_narrow_terminal_it_is_one_line_without_what_was_caught(
    monkeypatch: pytest.MonkeyPatch, width: int, label: str
) -> None:
    lines = lines_of(monkeypatch, width=width, terminal=True, label=label, total=10_000)
    shown = re.sub(r"\x1b\[[?\d]*\w", "", next(line for line in reversed(lines) if "left" in line))
    assert len(shown) <= width
    for figure in ("10000/10000", "acc 94.7", "/s", "left"):
        assert figure in shown, shown
    assert "caught" not in shown
    assert shown.count("…") <= 1


def test_a_run_with_nothing_left_to_do_draws_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    text = io.StringIO()
    monkeypatch.setattr(progress, "errors", Console(file=text, width=80, force_terminal=True))
    monkeypatch.setattr(progress, "is_terminal", lambda: True)
    with progress.progress_bar("fedra / lie", 5):
        pass
    assert text.getvalue() == ""


def test_lines_come_at_the_end_and_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 0.0

    def tick() -> float:
        nonlocal clock
        clock += 0.25
        return clock

    monkeypatch.setattr(progress.time, "perf_counter", tick)
    lines = lines_of(monkeypatch, width=80, terminal=False, label="fedra / [odd]", total=100)
    assert 3 < len(lines) < 50
    assert lines[0].startswith("fedra / [odd]: round ")
    assert "accuracy -  caught" in lines[0]
    assert lines[-1].startswith("fedra / [odd]: round 100/100  accuracy 94.7  caught 400  missed 100  ")
    assert lines[-1].endswith("rounds/s  0 s left")


def test_quiet_has_no_observer() -> None:
    with progress.progress_bar("x", 3, quiet=True) as observers:
        assert observers == ()
