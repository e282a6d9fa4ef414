"""The local engine: processes on this machine, each with one thread, that take one job after another."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess

from fedra.experiments.jobs import Advanced, Attempts, Failed, Job, Report, Started

_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
_SECONDS_BETWEEN_LOOKS = 0.5
_SECONDS_TO_STOP = 30.0


def usable_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True, kw_only=True)
class LocalEngine:
    """Runs jobs in `workers` processes; None: one for each core."""

    workers: int | None = None

    def run(self, jobs: Sequence[Job], report: Report) -> None:
        """Run all jobs; one that fails, or whose process dies, leaves the others alone."""
        waiting = deque(jobs)
        workers: list[_Worker] = []
        most = self.workers or usable_cores()
        try:
            while waiting or any(worker.job for worker in workers):
                while waiting and (free := _free(workers, most)):
                    free.take(waiting.popleft())
                ready = set(wait([worker.connection for worker in workers], timeout=_SECONDS_BETWEEN_LOOKS))
                for worker in [worker for worker in workers if worker.connection in ready]:
                    if not worker.listen(report):
                        workers.remove(worker)
        finally:
            # A job that still runs, after an interrupt, writes a checkpoint before its process ends.
            for worker in workers:
                worker.interrupt()
            for worker in workers:
                worker.end()


class _Worker:
    """A process, this end of the connection with it, and the job that it has."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.job: Job | None = None
        self._process: SpawnProcess = context.Process(target=_work, args=(theirs,), daemon=True)
        with _environment(), _interrupts_blocked():
            self._process.start()
        theirs.close()

    def take(self, job: Job) -> None:
        self.job = job
        self.connection.send(job)

    def listen(self, report: Report) -> bool:
        """Pass on what the process reports, and return whether it is still there."""
        try:
            event = self.connection.recv()
        except (EOFError, ConnectionResetError):
            self._process.join()
            if self.job is not None:
                error = f"the process of this run {_ending(self._process.exitcode)}"
                report(Failed(run=self.job.run, error=error, trace=""))
                self.job = None
            return False
        if not isinstance(event, Started | Advanced):
            self.job = None
        report(event)
        return True

    def interrupt(self) -> None:
        """Ask for the end of a running job; a process without one has nothing to save and ends at once."""
        if self._process.is_alive():
            if self.job is None:
                self._process.kill()
            else:
                self._process.terminate()

    def end(self) -> None:
        self._process.join(_SECONDS_TO_STOP)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self.connection.close()


def _free(workers: list[_Worker], most: int) -> _Worker | None:
    """Return a worker without a job, a new one while there may be more."""
    for worker in workers:
        if worker.job is None:
            return worker
    if len(workers) < most:
        workers.append(_Worker())
        return workers[-1]
    return None


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        name = signal.Signals(-code).name
        hint = "; out of memory? try fewer --workers" if name == "SIGKILL" else ""
        return f"was ended by {name}{hint}"
    return f"ended unexpectedly with exit code {code}"


@contextmanager
def _environment() -> Iterator[None]:
    """Have a process start with one thread for each library: cells are what runs in parallel."""
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(_ONE_THREAD)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Have a process start deaf to Ctrl-C, which a terminal sends to all of them: whoever started it decides."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(connection: Connection) -> None:
    """Do jobs until SIGTERM, which ends the one at hand after a checkpoint."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    attempt = Attempts()
    try:
        while True:
            connection.send(attempt(connection.recv(), connection.send))
    except (KeyboardInterrupt, EOFError):
        return


def _end_with_parent() -> None:
    """End at once when the parent is gone: a run nobody waits for would hold its folder."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
