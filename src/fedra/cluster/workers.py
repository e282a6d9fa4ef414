"""Rounds of files on a Ray cluster: columns are cut over its cores, and what comes of it are the bits of one process.

The blocks of a pass are those of one process, and what they give is added up in their order, so it does not matter who
does which block, nor whether one is done twice.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from fedra import __version__, checks
from fedra.cluster.connection import connected
from fedra.cluster.packing import Packed, packed
from fedra.cluster.worker import Done, Job, ResultFile, RowFiles, Unread, compute, cpu_kind
from fedra.server.faults import Unusable
from fedra.updates.journal import boot_id
from fedra.updates.passes import Array, Block, Passes
from fedra.updates.readers import TensorReader
from fedra.updates.store import FolderStore
from fedra.updates.tensors import Form

_logger = logging.getLogger("fedra")
# Ray has the next ones waiting while it works on these.
_WAITING = 2


@dataclass(eq=False, kw_only=True)
class RayWorkers:
    """Does the blocks of passes over files on an existing Ray cluster, one core each; a context of one connection.

    Every node needs this version of fedra. A worker reads what it needs of every file under the path that it has here;
    where it does not see the same file there, the columns are sent to it. It writes what it makes of the result into
    the driver's folder where that is shared, else the driver does. A block whose process or node dies is done again.

    Attributes:
        address: of the cluster; None: RAY_ADDRESS, or the cluster of this machine.
        workers: blocks at a time; None: as many as the cluster has cores.
        retries: for a block that was lost, not for one that raised.
        shared: whether workers are to look for files at all; False: all columns are sent.
    """

    address: str | None = None
    workers: int | None = None
    retries: int = 3
    shared: bool = True

    _stack: ExitStack = field(default_factory=ExitStack, init=False, repr=False)
    _ray: Any = field(default=None, init=False, repr=False)
    _token: str = field(default="", init=False, repr=False)
    _other_cpus: set[str] = field(default_factory=set, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.workers is not None:
            checks.whole("workers", self.workers, 1)
        checks.whole("retries", self.retries, 0)

    def __enter__(self) -> Self:
        self._ray = self._stack.enter_context(connected(self.address))
        self._token = secrets.token_hex(8)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
        self._ray = None

    def over(
        self, work: Callable[[int, int], Any], blocks: Sequence[tuple[int, int]], passes: Passes, places: Sequence[int]
    ) -> Generator[Block, None, None]:
        """Yield what each block of a pass gave, in the blocks' order."""
        if self._ray is None:
            raise ValueError("this is connected to no cluster; use it as: with RayWorkers(...) as workers: ...")
        if not blocks:
            return
        found = packed(work, passes)
        with ExitStack() as stack:
            shared = _shared_file(passes, stack) if found.results else None
            job = job_of(self._token, found, passes, places, shared)
            yield from _Blocks(self, self._ray, job, found, passes, blocks).results()

    def at_once(self) -> int:
        """Return how many blocks are given to Ray at a time."""
        if self.workers is not None:
            return self.workers
        return _WAITING * max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def notice_cpu(self, cpu: str) -> None:
        """Warn once of each kind of CPU that is not the driver's."""
        if cpu != (own := cpu_kind()) and cpu not in self._other_cpus:
            self._other_cpus.add(cpu)
            _logger.warning(
                "a worker's CPU is of another kind (%s) than the driver's (%s): the result may differ from that of one "
                "machine in last bits",
                *(cpu, own),
            )

    def notice_unseen(self, reason: str) -> None:
        """Warn once that workers do not see what the driver sees, and send what they need from now on."""
        if self.shared:
            self.shared = False
            _logger.warning(
                "a worker cannot read or write what the driver can (%s): from here on columns are sent to workers",
                reason,
            )


class _Blocks:
    """The blocks of one pass, some of them under way."""

    def __init__(
        self,
        workers: RayWorkers,
        ray: Any,
        job: Job,
        found: Packed,
        passes: Passes,
        blocks: Sequence[tuple[int, int]],
    ) -> None:
        self._workers, self._ray = workers, ray
        self._rows, self._vectors, self._results = found.rows, found.vectors, found.results
        self._passes, self._blocks = passes, blocks
        self._job = ray.put(job)
        self._task = ray.remote(num_cpus=1, max_retries=workers.retries, scheduling_strategy="SPREAD")(block_of_columns)
        # Each with its position, and what it was sent, which has to stay as long as it may be done again.
        self._running: dict[Any, tuple[int, list[Any]]] = {}
        self._done: dict[int, Block] = {}

    def results(self) -> Generator[Block, None, None]:
        """Yield what each block gave, in order."""
        at_once, submitted = self._workers.at_once(), 0
        try:
            for position in range(len(self._blocks)):
                while position not in self._done:
                    # Few wait to be taken, however many there are: each may be as large as a matrix of distances.
                    while len(self._running) < at_once and submitted < min(len(self._blocks), position + 2 * at_once):
                        self._submit(submitted, send=not self._workers.shared)
                        submitted += 1
                    ended, _ = self._ray.wait(list(self._running))
                    for reference in ended:
                        self._take(reference)
                yield self._done.pop(position)
        finally:
            for reference in self._running:
                self._ray.cancel(reference, force=True)

    def _submit(self, position: int, *, send: bool) -> None:
        start, stop = self._blocks[position]
        sent = [self._ray.put(self._columns(row, start, stop)) for row in self._rows] if send else None
        vectors = []
        for vector in self._vectors:
            values = np.empty(stop - start, dtype=self._passes.dtype)
            vector.read(start, stop, values)
            vectors.append(self._ray.put(values))
        reference = self._task.remote(self._job, start, stop, vectors, sent)
        self._running[reference] = (position, [*vectors, *(sent or ())])

    def _check_files(self) -> None:
        """Reject those whose files are not what they were when the driver opened them."""
        for row in self._rows:
            try:
                for file in row.contents.files:
                    file.check_unchanged()
            except Unusable as fault:
                if row.place is None:
                    raise OSError(f"base: {fault}; start again") from fault
                self._passes.reject(row.place, str(fault))
        self._passes.check()

    def _columns(self, row: TensorReader, start: int, stop: int) -> Array:
        """Return columns of a row as the driver reads them; who cannot be read is rejected, as without a cluster."""
        if row.place is None:
            return self._passes.base_part(row, start, stop)
        values = np.empty(stop - start, dtype=self._passes.dtype)
        try:
            row.read(start, stop, values)
        except Unusable as fault:
            self._passes.reject(row.place, str(fault))
            self._passes.check()
        return values

    def _take(self, reference: Any) -> None:
        position, _ = self._running.pop(reference)
        found = self._reply(reference)
        if isinstance(found, Unread):
            self._check_files()
            self._submit(position, send=True)
            # The files are what they were, and the driver could read them: it is the worker that sees others, or none.
            self._workers.notice_unseen(found.reason)
            return
        self._workers.notice_cpu(found.cpu)
        for number, first, values in found.written:
            self._passes.store.write(self._results[number], first, values)
        self._done[position] = Block(found.value, found.largest)

    def _reply(self, reference: Any) -> Done | Unread:
        errors = self._ray.exceptions
        try:
            found: Done | Unread = self._ray.get(reference)
        except errors.RayTaskError as error:
            if isinstance(error.cause, ImportError):
                raise ValueError(
                    f"a worker cannot import what it needs ({error.cause}); every node needs fedra {__version__}, and "
                    "the modules of own rules"
                ) from error
            raise error.cause from error
        except errors.RayError as error:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            raise OSError(
                f"Ray lost a block of columns {self._workers.retries + 1} times ({type(error).__name__}: {lines[0]}); "
                "nothing that was done before is lost: the same command goes on from there"
            ) from error
        return found


def block_of_columns(job: Job, start: int, stop: int, vectors: list[Any], sent: list[Any] | None) -> Done | Unread:
    """Do a block in a task of Ray's."""
    import ray

    return compute(job, start, stop, ray.get(vectors), None if sent is None else ray.get(sent))


def job_of(token: str, found: Packed, passes: Passes, places: Sequence[int], shared: Path | None) -> Job:
    """Return a pass as workers are given it."""

    def file_of(result: Array) -> ResultFile | None:
        store = passes.store
        if not isinstance(store, FolderStore) or (path := store.path_of(result)) is None:
            return None
        return ResultFile(path=path.absolute(), offset=len(store.prefix))

    return Job(
        aggregation=token,
        fedra=__version__,
        dimension=passes.dimension,
        dtype=passes.dtype,
        form=found.rows[0].form if found.rows else Form(),
        rows=tuple(
            RowFiles(
                path=row.contents.path.absolute(),
                versions=tuple(file.version for file in row.contents.files),
                place=row.place,
            )
            for row in found.rows
        ),
        results=tuple(map(file_of, found.results)),
        shared=shared,
        boot=boot_id(),
        places=tuple(places),
        complete=passes.looking.complete,
        work=found.work,
    )


def _shared_file(passes: Passes, stack: ExitStack) -> Path | None:
    """Make a file that is seen under this path only where the folder of results is the driver's."""
    if not isinstance(passes.store, FolderStore):
        return None
    path = (passes.store.folder / f".fedra-shared-{secrets.token_hex(8)}").absolute()
    path.touch(exist_ok=False)
    stack.callback(path.unlink, missing_ok=True)
    return path
