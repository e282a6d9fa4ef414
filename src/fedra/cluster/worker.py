"""What a worker does: one block of columns of a pass, from files that it sees itself or from columns it was sent."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedra import __version__
from fedra.cluster.packing import unpacked
from fedra.server.faults import Unusable
from fedra.updates.formats import read_contents
from fedra.updates.journal import boot_id
from fedra.updates.passes import Array, Passes
from fedra.updates.readers import TensorReader
from fedra.updates.sources import as_bytes, most_open
from fedra.updates.tensors import Form

Version = tuple[str, int, int, str]


@dataclass(frozen=True, kw_only=True)
class RowFiles:
    """Where a row is: the path of its files and what tells that they are those, and whose it is."""

    path: Path
    versions: tuple[Version, ...]
    place: int | None


@dataclass(frozen=True, kw_only=True)
class ResultFile:
    """Where a result's vector is: a file, and how many bytes stand before the vector."""

    path: Path
    offset: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Job:
    """A pass as workers are given it.

    Attributes:
        aggregation: tells one from another; its files stay open between blocks.
        fedra: the version that sent it.
        dimension, dtype: of all rows.
        form: the tensors of the rows of files.
        rows: the rows of files that the work reads, by their numbers in it.
        results: where the work writes to, by number; None where that is no file.
        shared: a file that is there where the results' folder is the driver's own; None: what is written comes back.
        boot: tells the driver's machine from others.
        places: the clients of the pass.
        complete: those that need no screening any more.
        work: see `packing`.
    """

    aggregation: str
    fedra: str
    dimension: int
    dtype: np.dtype[Any]
    form: Form
    rows: tuple[RowFiles, ...]
    results: tuple[ResultFile | None, ...]
    shared: Path | None
    boot: str
    places: tuple[int, ...]
    complete: frozenset[int]
    work: bytes


@dataclass(frozen=True, eq=False, kw_only=True)
class Done:
    """What a block gave: its value, what screening saw, what could not be written in place, and the kind of CPU."""

    value: Array | None
    largest: dict[int, int]
    written: tuple[tuple[int, int, Array], ...]
    cpu: str


@dataclass(frozen=True, kw_only=True)
class Unread:
    """A worker could not read or write some file; whose fault that is, the driver finds out."""

    reason: str


def compute(
    job: Job, start: int, stop: int, vectors: Sequence[Array], sent: Sequence[Array] | None = None
) -> Done | Unread:
    """Do a block of a pass; `vectors`, and `sent` in the place of files, are the columns of the block."""
    if job.fedra != __version__:
        raise ValueError(
            f"a worker has fedra {__version__}, and this is {job.fedra}; install the same version on every node"
        )
    shard = _Shard(job)
    passes = Passes(dimension=job.dimension, dtype=job.dtype, store=shard, complete=job.complete)
    try:
        if sent is None:
            rows: Sequence[Any] = [_FILES.reader(job, row) for row in job.rows]
        else:
            rows = [SentColumns(start, part, row.place) for row, part in zip(job.rows, sent, strict=True)]
        values = {
            "passes": [passes],
            "row": rows,
            "vector": [SentColumns(start, part, None) for part in vectors],
            # A result is known here by its number alone.
            "result": [np.array(number) for number in range(len(job.results))],
        }
        with shard.opened(in_place=sent is None):
            value = unpacked(job.work, values)(start, stop)
    except (Unusable, OSError) as error:
        if sent is not None:
            raise
        return Unread(reason=str(error))
    if faults := passes.looking.faults:
        return Unread(reason=next(iter(faults.values())))
    largest = passes.looking.seen(job.places, start, stop)
    return Done(value=value, largest=largest, written=tuple(shard.kept), cpu=cpu_kind())


def cpu_kind() -> str:
    """Return the kind of CPU that kernels are compiled for: another one adds in another order."""
    import llvmlite.binding as llvm

    return os.environ.get("NUMBA_CPU_NAME") or str(llvm.get_host_cpu_name())


class SentColumns:
    """A row of which the columns of one block came with it."""

    def __init__(self, start: int, values: Array, place: int | None) -> None:
        self.place = place
        self._start, self._values = start, values

    def read(self, first: int, last: int, target: Array) -> None:
        """Write columns first..last."""
        target[...] = self._values[first - self._start : last - self._start]

    def expect(self, first: int, last: int) -> None:
        """All of it is there."""


class _Files:
    """The files of one aggregation, open from one block to the next."""

    def __init__(self) -> None:
        self._aggregation = ""
        self._readers: dict[RowFiles, TensorReader] = {}
        self._open = 0

    def reader(self, job: Job, row: RowFiles) -> TensorReader:
        """Return the reader of a row; `Unusable` where this machine does not see the files that the driver sees."""
        if job.aggregation != self._aggregation:
            self._close()
            self._aggregation = job.aggregation
        if (found := self._readers.get(row)) is not None:
            return found
        contents = read_contents(row.path)
        try:
            if tuple(file.version for file in contents.files) != row.versions:
                raise Unusable(f"{row.path} is another file here")
            job.form.check(contents.tensors)
        except Unusable:
            contents.close()
            raise
        self._open += len(contents.files)
        for file in contents.files if self._open > most_open() else ():
            file.release()
        found = self._readers[row] = TensorReader(contents, job.form, row.place)
        return found

    def _close(self) -> None:
        for reader in self._readers.values():
            reader.contents.close()
        self._readers, self._open = {}, 0


_FILES = _Files()


class _Shard:
    """Takes what a block writes to results: into their files where these are the driver's, else for the way back."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._handles: dict[int, int] = {}
        self.kept: list[tuple[int, int, Array]] = []

    @contextmanager
    def opened(self, *, in_place: bool) -> Iterator[None]:
        """Have the files of the results open, where they are here."""
        job = self._job
        try:
            if in_place and job.shared is not None and job.shared.exists():
                flags = os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW
                for number, result in enumerate(job.results):
                    if result is not None:
                        self._handles[number] = os.open(result.path, flags)
            yield
            # What another machine has in memory must not count as written should it stop.
            if self._handles and boot_id() != job.boot:
                for handle in self._handles.values():
                    os.fsync(handle)
        finally:
            for handle in self._handles.values():
                os.close(handle)

    def write(self, vector: Array, first: int, values: Array) -> None:
        """Write values at a column of a result."""
        number = int(vector)
        result, handle = self._job.results[number], self._handles.get(number)
        if result is None or handle is None:
            self.kept.append((number, first, values.copy()))
            return
        left, offset = as_bytes(values), result.offset + first * values.itemsize
        while left:
            count = os.pwrite(handle, left, offset)
            left, offset = left[count:], offset + count

    def new(self, name: str, dimension: int, dtype: np.dtype[Any]) -> tuple[Array, bool]:
        """A block makes no vectors."""
        raise ValueError("vectors are made before a pass, not by its blocks")

    def read(self, vector: Array, first: int, last: int) -> Array:
        """A block reads no results."""
        raise ValueError("results are read after a pass, not by its blocks")

    def clear(self) -> None:
        """Nothing is held."""

    def close(self) -> None:
        """Nothing is held."""
