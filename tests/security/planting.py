"""Things that an attacker leaves in a folder, and what must be as it was afterwards."""

from __future__ import annotations

import os
import shutil
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from fedra.data import Dataset, load_dataset
from fedra.experiments import Job
from fedra.experiments.jobs import Attempts, Report

PATIENCE = 20.0


class InThisProcess:
    """An engine that starts no processes."""

    def run(self, jobs: Sequence[Job], report: Report) -> None:
        attempt = Attempts()
        for job in jobs:
            report(attempt(job, report))


class Outside:
    """A folder that belongs to somebody else, with things that a link can lead to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "folder" / "deeper").mkdir(parents=True)
        for name in ("file", "folder/thesis.txt", "folder/rounds-00000099.parquet", "folder/deeper/x.json"):
            (path / name).write_bytes(f"years of work on {name}".encode())
        self._before = self._seen()

    def _seen(self) -> dict[str, Any]:
        found = {}
        for path in sorted([self.path, *self.path.rglob("*")]):
            about = path.lstat()
            content = path.read_bytes() if path.is_file() else None
            found[str(path)] = (stat.S_IFMT(about.st_mode), about.st_mtime_ns, content)
        return found

    def assert_untouched(self) -> None:
        assert self._seen() == self._before


# By name: what to leave in a place.
PLANTS: dict[str, Callable[[Path, Outside], None]] = {
    "link to a file": lambda place, outside: place.symlink_to(outside.path / "file"),
    "link to a folder": lambda place, outside: place.symlink_to(outside.path / "folder"),
    "link to nothing": lambda place, outside: place.symlink_to(outside.path / "nothing"),
    "second name of a file": lambda place, outside: place.hardlink_to(outside.path / "file"),
}


def plant(place: Path, kind: str, outside: Outside) -> None:
    """Put something in the place of whatever is there."""
    remove(place)
    place.parent.mkdir(parents=True, exist_ok=True)
    PLANTS[kind](place, outside)


def remove(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)


def places_in(*folders: Path) -> list[str]:
    """Return all that there is in folders, and the names beside it that a program may take while it writes."""
    found = {str(path.relative_to(folder)) for folder in folders for path in folder.rglob("*")}
    return sorted(found | {str(Path(name).with_name(f".{Path(name).name}.new")) for name in found})


@contextmanager
def nobody_waits_for(pipe: Path) -> Iterator[None]:
    """Put a pipe in a place, and fail where somebody opens it to read, or would wait for ever to write."""
    remove(pipe)
    os.mkfifo(pipe)
    done, opened = threading.Event(), threading.Event()
    watching = threading.Thread(target=partial(_watch, pipe, done, opened))
    watching.start()
    try:
        yield
    finally:
        done.set()
        watching.join()
    assert not opened.is_set(), f"somebody waited for {pipe}"


def _watch(pipe: Path, done: threading.Event, opened: threading.Event) -> None:
    waited = 0.0
    while not done.wait(0.01):
        waited += 0.01
        # Opening it to write succeeds as soon as there is a reader; after a while, a writer is set free too.
        flags = os.O_WRONLY if waited < PATIENCE else os.O_RDWR
        try:
            handle = os.open(pipe, flags | os.O_NONBLOCK)
        except OSError:
            continue
        if stat.S_ISFIFO(os.fstat(handle).st_mode):  # It may have been replaced by a file.
            opened.set()
        os.close(handle)


_DIGITS: list[Dataset] = []


def digits() -> Dataset:
    if not _DIGITS:
        _DIGITS.append(load_dataset("digits"))
    return _DIGITS[0]
