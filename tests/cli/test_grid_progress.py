from __future__ import annotations

import io

import pytest
from rich.console import Console

from fedra.cli import grid_progress
from fedra.cli.grid_progress import duration, shown
from fedra.experiments import Advanced, Failed, Finished, Started, Tally
from fedra.simulation import SimulationConfig

EVENTS = (
    Started(run="one"),
    Advanced(run="one", round=1, accuracy=None),
    Started(run="two"),
    Advanced(run="one", round=40, accuracy=91.25),
    Failed(run="two", error="ValueError: [no] such thing", trace=""),
    Finished(run="three", accuracy=88.0, seconds=100.0),
)


class Screen:
    """A console that remembers, as wide as a terminal usually is."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, terminal: bool) -> None:
        self._written = io.StringIO()
        console = Console(file=self._written, width=80, force_terminal=terminal, highlight=False)
        monkeypatch.setattr(grid_progress, "errors", console)
        monkeypatch.setattr(grid_progress, "is_terminal", lambda: terminal)

    @property
    def text(self) -> str:
        return self._written.getvalue()


def tally() -> Tally:
    return Tally({name: SimulationConfig(rounds=100) for name in ("one", "two", "three", "four")}, workers=2)


def test_on_a_terminal_it_shows_what_runs_and_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(monkeypatch, terminal=True)
    with shown(tally()) as watch:
        for event in EVENTS:
            watch(event)
    assert "1/4 runs done, 1 failed, time left: " in screen.text
    assert "40/100" in screen.text
    assert "accuracy 91.2" in screen.text


def test_elsewhere_it_says_what_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(monkeypatch, terminal=False)
    with shown(tally()) as watch:
        for event in EVENTS:
            watch(event)
    failed, done = screen.text.splitlines()
    assert failed.startswith("failed two: ValueError: [no] such thing; 0/4 runs done, 1 failed, time left: ")
    assert done.startswith("done three: accuracy 88.0, 2 min; 1/4 runs done, 1 failed, time left: ")


def test_elsewhere_long_runs_are_heard_of(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(monkeypatch, terminal=False)
    monkeypatch.setattr(grid_progress, "_SECONDS_BETWEEN_LINES", -1.0)
    with shown(tally()) as watch:
        for event in EVENTS[:2]:
            watch(event)
    assert screen.text.splitlines()[-1].startswith("running one round 1/100 accuracy -; 0/4 runs done")


def test_quiet_is_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(monkeypatch, terminal=True)
    counted = tally()
    with shown(counted, quiet=True) as watch:
        for event in EVENTS:
            watch(event)
    assert screen.text == ""
    assert counted.ended == 2


@pytest.mark.parametrize(
    ("seconds", "said"), [(None, "unknown"), (0.4, "0 s"), (89, "89 s"), (600, "10 min"), (9000, "2.5 h")]
)
def test_durations_as_people_say_them(seconds: float | None, said: str) -> None:
    assert duration(seconds) == said
