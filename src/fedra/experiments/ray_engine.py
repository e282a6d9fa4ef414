"""The Ray engine: jobs are tasks of a Ray cluster, and their folders come back to one place."""

from __future__ import annotations

import io
import shutil
import tarfile
import tempfile
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fedra.cluster.connection import connected
from fedra.experiments.jobs import Advanced, Attempts, Event, Failed, Finished, Job, Report, Started
from fedra.files import inside

_SECONDS_BETWEEN_LOOKS = 0.5


@dataclass(frozen=True, kw_only=True)
class RayEngine:
    """Runs jobs on an existing Ray cluster, one core each.

    A job whose node or process dies is tried again elsewhere, `retries` times. Every node needs fedra and the data.

    Attributes:
        address: of the cluster; None: RAY_ADDRESS, or the cluster of this machine.
        workers: jobs at a time; None: as many as the cluster has cores.
        retries: for jobs that were lost, not for those that raised.
    """

    address: str | None = None
    workers: int | None = None
    retries: int = 3

    def run(self, jobs: Sequence[Job], report: Report) -> None:
        """Run all jobs; one that fails, or is lost too often, leaves the others alone."""
        with connected(self.address) as ray:
            self._run(ray, deque(jobs), report)

    def _run(self, ray: Any, waiting: deque[Job], report: Report) -> None:
        task = ray.remote(num_cpus=1, max_retries=self.retries)(_attempt_elsewhere)
        board = _board(ray)
        news = board.take.remote()
        running: dict[Any, Job] = {}
        try:
            while waiting or running:
                while waiting and len(running) < (self.workers or len(waiting) + len(running)):
                    job = waiting.popleft()
                    running[task.remote(job, packed_folder(job.folder), board)] = job
                ended, _ = ray.wait(list(running), timeout=_SECONDS_BETWEEN_LOOKS)
                if ray.wait([news], timeout=0)[0]:
                    for event in _taken(ray, news):
                        report(event)
                    news = board.take.remote()
                for reference in ended:
                    report(_brought_back(ray, reference, running.pop(reference)))
        finally:
            for reference in running:
                ray.cancel(reference, force=True)
            ray.kill(board)


def packed_folder(folder: Path) -> bytes:
    """Return a folder's files as a tar archive; a folder that is not there is an empty one, and links are left out."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for file in sorted(folder.rglob("*")):
            if file.is_file() and not file.is_symlink() and not file.name.startswith("."):
                tar.add(file, arcname=str(file.relative_to(folder)))
    return archive.getvalue()


def unpack_folder(archive: bytes, folder: Path) -> None:
    """Put an archive's files in the place of a folder."""
    inside(folder.parent, folder.name)
    beside = folder.with_name(f".{folder.name}.new")
    if beside.is_symlink():
        beside.unlink()
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(beside, filter="data")
    if folder.exists():
        shutil.rmtree(folder)
    beside.replace(folder)


class _Board:
    """Holds what running jobs report, until it is fetched."""

    def __init__(self) -> None:
        self._news: list[Event] = []

    def post(self, event: Event) -> None:
        self._news.append(event)

    def take(self) -> list[Event]:
        news, self._news = self._news, []
        return news


def _board(ray: Any) -> Any:
    """Make the board on the node of whoever looks at it; should that one be lost, Ray makes it anew."""
    here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
        node_id=ray.get_runtime_context().get_node_id(), soft=True
    )
    lasting = ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1, scheduling_strategy=here)
    return lasting(_Board).remote()


def _attempt_elsewhere(job: Job, archive: bytes, board: Any) -> tuple[Finished | Failed, bytes]:
    """Run a job on whatever node this is, from the packed folder; return how it ended, and the folder packed again."""

    def report(event: Event) -> None:
        board.post.remote(event)

    with tempfile.TemporaryDirectory(prefix="fedra-") as directory:
        folder = Path(directory) / "run"
        unpack_folder(archive, folder)
        outcome = Attempts()(replace(job, folder=folder), report)
        return outcome, packed_folder(folder)


def _brought_back(ray: Any, reference: Any, job: Job) -> Finished | Failed:
    try:
        outcome, archive = ray.get(reference)
    except ray.exceptions.RayError as error:
        lines = str(error).strip().splitlines() or [""]
        return Failed(run=job.run, error=f"{type(error).__name__}: {lines[0]}", trace=str(error))
    unpack_folder(archive, job.folder)
    ended: Finished | Failed = outcome
    return ended


def _taken(ray: Any, news: Any) -> list[Started | Advanced]:
    try:
        taken: list[Started | Advanced] = ray.get(news)
    except ray.exceptions.RayError:
        # The board died with its node and is started anew; what it held was progress only, no result.
        return []
    return taken
