"""MLflow: a SQLite store in a folder, without a server."""

from __future__ import annotations

import logging
import os
import time as clock
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from fedra.checks import wrong
from fedra.files import inside, write_new
from fedra.server.observers import RunInfo
from fedra.trackers.base import Session, Tracker, run_name, settings_of

STORE = "mlflow.db"
TAG = "fedra.run"

# MLflow's own limits for one call.
_MOST_METRICS = 1000
_MOST_PARAMETERS = 100
# A call costs milliseconds, as much as a fast round, and locks the store for other runs: it is made again after this
# many times what it took. What waits meanwhile is lost if the process is killed.
_PAUSE = 10.0
# Of numbers that wait for a store that somebody else has locked.
_MOST_WAITING = 100_000


@dataclass(kw_only=True, eq=False)
class MLflow(Tracker):
    """Writes a run's parameters, metrics by round, and tags into <folder>/mlflow.db.

    A run that goes on is found by its tag ``fedra.run``. MLflow cannot take numbers back: rounds done again after a
    crash have two values, the later of which counts.

    Attributes:
        experiment: the MLflow experiment that the run belongs to.
    """

    name: ClassVar[str] = "mlflow"
    library: ClassVar[str] = "mlflow"

    experiment: str = "fedra"

    def __post_init__(self) -> None:
        if not isinstance(self.experiment, str) or not self.experiment.strip():
            raise TypeError(wrong("experiment", self.experiment, "the name of an MLflow experiment"))
        super().__post_init__()

    def open(self, run: RunInfo, folder: Path) -> Session:
        """Open the store, made where it is not there, and the run in it."""
        store = inside(folder.resolve(), STORE)
        if set("?#%") & set(str(store)):
            raise ValueError(
                f"{store} has one of ?, # and %, which MLflow's addresses cannot hold; give another folder"
            )
        return _StoredRun(store, self.experiment, run)


class _StoredRun(Session):
    """A run in MLflow's store."""

    def __init__(self, store: Path, experiment: str, run: RunInfo) -> None:
        # A local file is all that is wanted. MLflow looks at this when it is imported.
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        from mlflow.entities import Metric, Param, RunTag
        from mlflow.tracking import MlflowClient

        self._metric, self._tag = Metric, RunTag
        self._waiting: list[Any] = []
        self._tags: dict[str, str] = {}
        self._next_call = 0.0
        if not store.exists():
            # Two processes that make its tables at the same time would leave a store that nobody can open.
            with _quiet("mlflow.store.db.utils"), _quiet("alembic.runtime.migration"):
                write_new(store, lambda fresh: MlflowClient(f"sqlite:///{fresh}"))
        self._client = MlflowClient(f"sqlite:///{store}")
        self._last = run.rounds_done
        number = self._experiment(experiment, store)
        name = run_name(run)
        earlier = []
        if run.rounds_done:
            earlier = self._client.search_runs(
                [number], f"tags.`{TAG}` = '{name}'", max_results=1, order_by=["attributes.start_time DESC"]
            )
        settings = settings_of(run)
        if earlier:
            self._id = earlier[0].info.run_id
            self._client.update_run(self._id, status="RUNNING")
            return
        tags = {TAG: name, "fedra.rule": settings["rule"], "fedra.platform": settings["platform"]}
        self._id = self._client.create_run(number, run_name=settings["run"], tags=tags).info.run_id
        parameters = [Param(key, value) for key, value in settings.items()]
        for first in range(0, len(parameters), _MOST_PARAMETERS):
            self._client.log_batch(self._id, params=parameters[first : first + _MOST_PARAMETERS])

    def numbers(self, values: Mapping[str, float], *, step: int, time: float) -> None:
        """Add metrics."""
        self._last = max(self._last, step)
        self._waiting += [self._metric(tag, value, int(time * 1000), step) for tag, value in values.items()]
        del self._waiting[:-_MOST_WAITING]
        if clock.monotonic() >= self._next_call:
            self._send()

    def texts(self, tag: str, lines: Sequence[str], *, step: int, time: float) -> None:
        """Keep the latest texts as a tag; MLflow has no texts by round."""
        self._tags[f"fedra.{tag}"] = "\n".join([f"round {step}:", *lines])

    def finish(self, numbers: Mapping[str, float], texts: Mapping[str, str]) -> None:
        """Add the run's figures as final/name, and say whether it was finished."""
        now = clock.time()
        self.numbers({f"final/{name}": value for name, value in numbers.items()}, step=self._last, time=now)
        self._tags |= {f"fedra.final.{name}": text for name, text in texts.items()}
        self._send()
        self._client.set_terminated(self._id, status="FINISHED" if numbers or texts else "KILLED")

    def close(self) -> None:
        """Let go of the client; MLflow keeps the store open for the next one."""
        del self._client

    def _send(self) -> None:
        started = clock.monotonic()
        try:
            self._send_all()
        finally:
            now = clock.monotonic()
            self._next_call = now + _PAUSE * (now - started)

    def _send_all(self) -> None:
        tags = [self._tag(key, value) for key, value in self._tags.items()]
        for first in range(0, len(tags), _MOST_PARAMETERS):
            self._client.log_batch(self._id, tags=tags[first : first + _MOST_PARAMETERS])
        self._tags.clear()
        while self._waiting:
            self._client.log_batch(self._id, metrics=self._waiting[:_MOST_METRICS])
            del self._waiting[:_MOST_METRICS]

    def _experiment(self, name: str, store: Path) -> str:
        from mlflow.exceptions import MlflowException

        found = self._client.get_experiment_by_name(name)
        if found is None:
            try:
                place = (store.parent / "artifacts").as_uri()
                return str(self._client.create_experiment(name, artifact_location=place))
            except MlflowException:
                # Another run was faster.
                found = self._client.get_experiment_by_name(name)
                if found is None:
                    raise
        return str(found.experiment_id)


@contextmanager
def _quiet(logger: str) -> Iterator[None]:
    """Keep a library from reporting every table that it makes."""
    named = logging.getLogger(logger)
    level = named.level
    named.setLevel(logging.WARNING)
    try:
        yield
    finally:
        named.setLevel(level)
