from __future__ import annotations

import io
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console

from fedra.cli import execution
from fedra.cli.execution import EngineOptions, Plan, PlanOutcome, duration, grid_progress
from fedra.cli.options import Engines
from fedra.experiments import (
    Advanced,
    Failed,
    Finished,
    Grid,
    GridOutcome,
    LocalEngine,
    RayEngine,
    Started,
    Tally,
    usable_cores,
)
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
        monkeypatch.setattr(execution, "errors", console)
        monkeypatch.setattr(execution, "is_terminal", lambda: terminal)

    @property
    def text(self) -> str:
        return self._written.getvalue()


def tally() -> Tally:
    return Tally({name: SimulationConfig(rounds=100) for name in ("one", "two", "three", "four")}, workers=2)


def test_on_a_terminal_it_shows_what_runs_and_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(monkeypatch, terminal=True)
    with grid_progress(tally()) as watch:
        for event in EVENTS:
            watch(event)
    assert "1/4 runs done, 1 failed, time left: " in screen.text
    assert "40/100" in screen.text
    assert "accuracy 91.2" in screen.text


def test_elsewhere_it_says_what_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(monkeypatch, terminal=False)
    with grid_progress(tally()) as watch:
        for event in EVENTS:
            watch(event)
    failed, done = screen.text.splitlines()
    assert failed.startswith("failed two: ValueError: [no] such thing; 0/4 runs done, 1 failed, time left: ")
    assert done.startswith("done three: accuracy 88.0, 2 min; 1/4 runs done, 1 failed, time left: ")


def test_elsewhere_long_runs_are_heard_of(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(monkeypatch, terminal=False)
    monkeypatch.setattr(execution, "_SECONDS_BETWEEN_LINES", -1.0)
    with grid_progress(tally()) as watch:
        for event in EVENTS[:2]:
            watch(event)
    assert screen.text.splitlines()[-1].startswith("running one round 1/100 accuracy -; 0/4 runs done")


def test_quiet_is_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(monkeypatch, terminal=True)
    counted = tally()
    with grid_progress(counted, quiet=True) as watch:
        for event in EVENTS:
            watch(event)
    assert screen.text == ""
    assert counted.ended == 2


@pytest.mark.parametrize(
    ("seconds", "said"), [(None, "unknown"), (0.4, "0 s"), (89, "89 s"), (600, "10 min"), (9000, "2.5 h")]
)
def test_durations_as_people_say_them(seconds: float | None, said: str) -> None:
    assert duration(seconds) == said


GRID = Grid.from_dict({"rules": ["fedavg", "median"], "attacks": ["lie"], "alpha_q": [0, 10]})


def test_a_plan_counts_cells_and_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(monkeypatch, terminal=False)
    plan = Plan.of(GRID, tmp_path, "g")
    plan.print_counts()
    assert screen.text.strip() == "4 cells, 3 distinct runs, 0 done already, 3 to run"
    assert plan.counts == {"cells": 4, "distinct": 3, "missing": 3}
    assert plan.as_dict()["runs"] == [{"run": name, "done": False} for name in GRID.runs]


def test_an_outcome_names_what_failed_also_where_it_is_quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(monkeypatch, terminal=False)
    printed = io.StringIO()
    monkeypatch.setattr(execution, "console", Console(file=printed, width=200))
    failed = {"one": Failed(run="one", error="E: [no]", trace="")}
    grid = GridOutcome(reused=1, failed=failed, results=pd.DataFrame())
    outcome = PlanOutcome(plan=Plan.of(GRID, tmp_path, "g"), grid=grid, seconds=100.0)
    outcome.print_summary(quiet=True)
    assert (screen.text, printed.getvalue()) == ("failed one: E: [no]\n", "")
    outcome.print_summary(quiet=False)
    assert printed.getvalue() == f"2 of 3 runs done in 2 min; results: {tmp_path}/results.csv\n"
    assert outcome.as_dict() == {
        "cells": 4,
        "distinct": 3,
        "missing": 3,
        "reused": 1,
        "failed": {"one": "E: [no]"},
        "seconds": 100.0,
        "results": str(tmp_path / "results.parquet"),
    }


def test_the_engine_is_the_one_that_was_chosen() -> None:
    local = EngineOptions(kind=Engines.LOCAL, workers=None, ray_address=None)
    assert (local.engine(), local.at_once) == (LocalEngine(workers=None), usable_cores())
    ray = EngineOptions(kind=Engines.RAY, workers=None, ray_address="x:1")
    assert (ray.engine(), ray.at_once) == (RayEngine(address="x:1", workers=None), None)
    with pytest.raises(ValueError, match="--ray-address x:1 is for --engine ray; this is --engine local"):
        EngineOptions(kind=Engines.LOCAL, workers=2, ray_address="x:1")
