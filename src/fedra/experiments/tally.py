"""How far a grid is, and how long the rest will take."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fedra.experiments.jobs import Advanced, Event, Failed, Finished, Started
from fedra.simulation import SimulationConfig


@dataclass(kw_only=True)
class Running:
    """A run under way: when this attempt began, its rounds by then and now, the last accuracy."""

    since: float
    first: int | None = None
    round: int = 0
    accuracy: float | None = None


class Tally:
    """Counts what an engine reports; the time left comes from the seconds that a round has taken so far.

    Runs of the same data and partition are taken to be alike; where none of a kind has been seen, all others count.
    Without `workers`, as many runs at a time are expected as were seen at once.
    """

    def __init__(
        self,
        runs: Mapping[str, SimulationConfig],
        *,
        workers: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.running: dict[str, Running] = {}
        self.finished: dict[str, Finished] = {}
        self.failed: dict[str, Failed] = {}
        self.runs = runs
        self._workers = workers
        self._most_at_once = 1
        self._clock = clock
        self._spent: dict[tuple[str, str], tuple[int, float]] = {}

    @property
    def ended(self) -> int:
        """Runs that need no more time."""
        return len(self.finished) + len(self.failed)

    def add(self, event: Event) -> None:
        """Take in what happened."""
        if event.run in self.finished or event.run in self.failed:
            return  # News of a run may come from a cluster after its end.
        if isinstance(event, Started):
            self.running[event.run] = Running(since=self._clock())
        elif isinstance(event, Advanced):
            state = self.running.setdefault(event.run, Running(since=self._clock()))
            if state.first is None:
                # Imports, data and compiling are over by now, and rounds of an earlier attempt are not of this one.
                state.first, state.since = event.round, self._clock()
            state.round, state.accuracy = event.round, event.accuracy
        else:
            self._end(event)
        self._most_at_once = max(self._most_at_once, len(self.running))

    def _end(self, event: Finished | Failed) -> None:
        state = self.running.pop(event.run, None)
        if isinstance(event, Failed):
            self.failed[event.run] = event
            return
        self.finished[event.run] = event
        if state is not None and state.first is not None:
            config = self.runs[event.run]
            self._note(_kind(config), config.rounds - state.first, self._clock() - state.since)

    def _note(self, kind: tuple[str, str], rounds: int, seconds: float) -> None:
        before = self._spent.get(kind, (0, 0.0))
        self._spent[kind] = (before[0] + rounds, before[1] + seconds)

    @property
    def seconds_left(self) -> float | None:
        """An estimate, None before there is anything to go by."""
        spent = dict(self._spent)
        for name, state in self.running.items():
            if state.first is not None and state.round > state.first:
                kind = _kind(self.runs[name])
                rounds, seconds = spent.get(kind, (0, 0.0))
                spent[kind] = (rounds + state.round - state.first, seconds + self._clock() - state.since)
        total_rounds = sum(rounds for rounds, _ in spent.values())
        if not total_rounds:
            return None
        overall = sum(seconds for _, seconds in spent.values()) / total_rounds
        left = 0.0
        for name, config in self.runs.items():
            if name in self.finished or name in self.failed:
                continue
            done = self.running[name].round if name in self.running else 0
            rounds, seconds = spent.get(_kind(config), (0, 0.0))
            left += (config.rounds - done) * (seconds / rounds if rounds else overall)
        return left / min(self._workers or self._most_at_once, len(self.runs))


def _kind(config: SimulationConfig) -> tuple[str, str]:
    return config.dataset, config.partition
