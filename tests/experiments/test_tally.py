from __future__ import annotations

from fedra.experiments import Advanced, Failed, Finished, Started, Tally
from fedra.simulation import SimulationConfig


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def tally(*, workers: int | None = 1, count: int = 2, rounds: int = 101) -> tuple[Tally, Clock]:
    clock = Clock()
    runs = {name: SimulationConfig(rounds=rounds) for name in "abcdef"[:count]}
    return Tally(runs, workers=workers, clock=clock), clock


def advance(to: Tally, run: str, number: int) -> None:
    to.add(Advanced(run=run, round=number, accuracy=50.0))


def test_nothing_to_go_by_is_no_estimate() -> None:
    counted, _ = tally()
    assert counted.seconds_left is None
    counted.add(Started(run="a"))
    advance(counted, "a", 1)
    assert counted.seconds_left is None


def test_rounds_so_far_tell_the_rest_without_the_slow_start() -> None:
    counted, clock = tally()
    counted.add(Started(run="a"))
    clock.now = 60.0
    advance(counted, "a", 1)
    clock.now = 70.0
    advance(counted, "a", 11)
    assert counted.seconds_left == 90 + 101
    clock.now = 160.0
    counted.add(Finished(run="a", accuracy=90.0, seconds=160.0))
    assert counted.seconds_left == 101


def test_workers_share_the_rest() -> None:
    counted, clock = tally(workers=2, count=4)
    advance(counted, "a", 1)
    clock.now = 100.0
    counted.add(Finished(run="a", accuracy=90.0, seconds=100.0))
    assert counted.seconds_left == 3 * 101 / 2


def test_without_workers_the_most_seen_at_once_counts() -> None:
    counted, clock = tally(workers=None, count=4)
    for name in "abc":
        counted.add(Started(run=name))
    advance(counted, "a", 1)
    clock.now = 100.0
    counted.add(Finished(run="a", accuracy=90.0, seconds=100.0))
    assert counted.seconds_left == 3 * 101 / 3


def test_kinds_of_runs_are_told_apart() -> None:
    clock = Clock()
    slow, fast = SimulationConfig(dataset="mnist", rounds=11), SimulationConfig(rounds=11)
    counted = Tally({"a": slow, "b": slow, "c": fast, "d": fast}, workers=1, clock=clock)
    advance(counted, "a", 1)
    clock.now = 100.0
    counted.add(Finished(run="a", accuracy=None, seconds=100.0))
    assert counted.seconds_left == 3 * 110.0
    advance(counted, "c", 1)
    clock.now = 110.0
    counted.add(Finished(run="c", accuracy=None, seconds=10.0))
    assert counted.seconds_left == 110.0 + 11.0


def test_failed_runs_need_no_time_and_late_news_is_ignored() -> None:
    counted, _ = tally(count=1)
    counted.add(Started(run="a"))
    counted.add(Failed(run="a", error="E", trace=""))
    advance(counted, "a", 4)
    assert (counted.running, counted.ended, list(counted.failed)) == ({}, 1, ["a"])


def test_a_run_begun_again_counts_from_its_new_start() -> None:
    counted, clock = tally(count=1)
    advance(counted, "a", 1)
    counted.add(Started(run="a"))
    clock.now = 50.0
    advance(counted, "a", 21)
    clock.now = 60.0
    advance(counted, "a", 31)
    assert counted.seconds_left == 70.0
