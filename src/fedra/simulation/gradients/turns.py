"""Passes through a model side by side, with the bits of one after another."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import torch


class _StoppedError(Exception):
    """Another pass failed, and this one was waiting for it."""


class Turns:
    """Which of several passes has done what, so that others that run at the same time can wait for it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._done: set[tuple[int, Hashable]] = set()
        self._ended: set[int] = set()
        self._stopped = False

    def done(self, number: int, what: Hashable) -> None:
        """Let it be known that a pass has done something."""
        with self._changed:
            self._done.add((number, what))
            self._changed.notify_all()

    def end(self, number: int, *, failed: bool) -> None:
        """Let it be known that a pass is over: whoever waits for it goes on, or ends where it failed."""
        with self._changed:
            self._ended.add(number)
            self._stopped |= failed
            self._changed.notify_all()

    def wait(self, number: int, what: Hashable) -> None:
        """Return once a pass has done something or is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or number in self._ended or (number, what) in self._done)
            if self._stopped:
                raise _StoppedError


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One pass among those that run at the same time; `before` is one that goes first in everything both do."""

    turns: Turns
    number: int
    before: int | None

    def wait(self, what: Hashable) -> None:
        """Return once the pass before this one has done something, at once where there is none."""
        if self.before is not None:
            self.turns.wait(self.before, what)

    def done(self, what: Hashable) -> None:
        """Let the next one do it."""
        self.turns.done(self.number, what)


@dataclass(frozen=True, kw_only=True)
class Pass:
    """Something to run, given its turn: how much of it there is, and whether it continues the one before it."""

    run: Callable[[Turn | None], None]
    size: int = 0
    continues: bool = False


class Crew:
    """Threads that run passes, each with one thread of torch's own: more cannot change the bits of an operation."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._pool: ThreadPoolExecutor | None = None

    def run(self, passes: Sequence[Pass]) -> None:
        """Run passes: with one thread in order and in the caller's, whose torch has one as well, else longest first."""
        if self.threads == 1:
            for one in passes:
                one.run(None)
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.threads, "fedra-pass", initializer=_one_thread_of_torch)
        turns = Turns()
        try:
            futures = [self._pool.submit(_run, turns, number, one) for number, one in enumerate(longest_first(passes))]
            errors = [error for future in futures if (error := future.exception()) is not None]
        except BaseException:
            # Nothing runs afterwards: what waits ends, what has not begun never does.
            turns.end(-1, failed=True)
            pool, self._pool = self._pool, None
            pool.shutdown(cancel_futures=True)
            raise
        for error in errors:
            if not isinstance(error, _StoppedError):
                raise error


def _one_thread_of_torch() -> None:
    # A thread that never asked takes, at its first operation, the number that was set last, in whichever thread.
    torch.get_num_threads()
    torch.set_num_threads(1)


def longest_first(passes: Sequence[Pass]) -> list[Pass]:
    """Order passes so that no thread is left with a long one in the end; each stays behind the one it continues."""
    chains: list[list[Pass]] = []
    for one in passes:
        if one.continues:
            chains[-1].append(one)
        else:
            chains.append([one])
    chains.sort(key=lambda chain: max(one.size for one in chain), reverse=True)
    return [one for chain in chains for one in chain]


def _run(turns: Turns, number: int, one: Pass) -> None:
    failed = True
    try:
        one.run(Turn(turns=turns, number=number, before=number - 1 if one.continues else None))
        failed = False
    finally:
        turns.end(number, failed=failed)
