"""One run as a job: what is reported while it runs, and running it, from the start or from its checkpoint."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fedra.data import Dataset, load_dataset
from fedra.files import inside, write_text
from fedra.server import Observer, RoundRecord
from fedra.simulation import SimulationConfig, resume, simulate, to_toml
from fedra.simulation.run_folder import CONFIG

ERROR = "error.json"
_SECONDS_BETWEEN_REPORTS = 0.5


@dataclass(frozen=True, kw_only=True)
class Job:
    """A run to do: its name, what it is, the folder that holds it or will, and who watches it in its process."""

    run: str
    config: SimulationConfig
    folder: Path
    observers: tuple[Observer, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Started:
    """A run has begun, or gone on from a checkpoint."""

    run: str


@dataclass(frozen=True, kw_only=True)
class Advanced:
    """A run has finished `round` rounds; `accuracy` is the last one measured, in percent."""

    run: str
    round: int
    accuracy: float | None


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A run is complete and its folder written; `seconds` are those of this attempt."""

    run: str
    accuracy: float | None
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Failed:
    """A run ended with an error, in one line and in full."""

    run: str
    error: str
    trace: str


Event = Started | Advanced | Finished | Failed
Report = Callable[[Event], None]


class Attempts:
    """Runs one job after another in this process, and keeps the last data set for the next job.

    An error of a run is returned as its outcome, so that the other runs go on.
    """

    def __init__(self) -> None:
        self._key = ""
        self._dataset: Dataset | None = None

    def __call__(self, job: Job, report: Report) -> Finished | Failed:
        """Run a job and return how it ended."""
        started = time.perf_counter()
        report(Started(run=job.run))
        try:
            accuracy = self._run(job, report)
        except Exception as error:
            return Failed(run=job.run, error=f"{type(error).__name__}: {error}", trace=traceback.format_exc())
        return Finished(run=job.run, accuracy=accuracy, seconds=time.perf_counter() - started)

    def _run(self, job: Job, report: Report) -> float | None:
        inside(job.folder.parent, job.folder.name)
        # An error of an earlier attempt would be taken for the content of somebody else's folder.
        (job.folder / ERROR).unlink(missing_ok=True)
        observers = (_Advances(job.run, report), *job.observers)
        dataset = self._load(job.config)
        if (job.folder / CONFIG).is_file():
            # The name fixes all but where the data lie and how often to save; for those the grid of today counts.
            write_text(job.folder / CONFIG, to_toml(job.config))
            # Trusted: what the file said before is gone.
            result = resume(job.folder, observers=observers, dataset=dataset, trust=True, run=job.run)
        else:
            result = simulate(job.config, out=job.folder, observers=observers, dataset=dataset, run=job.run)
        accuracy: float | None = result.summary["final_accuracy"]
        return accuracy

    def _load(self, config: SimulationConfig) -> Dataset:
        key = json.dumps([config.dataset, config.data_dir, config.to_dict()["dataset_params"]], default=repr)
        if self._dataset is None or key != self._key:
            self._dataset = None
            self._dataset = load_dataset(config.dataset, config.data_dir, **config.dataset_params)
            self._key = key
        return self._dataset


class _Advances(Observer):
    """Reports rounds now and then, and every measured accuracy."""

    def __init__(self, run: str, report: Report) -> None:
        self._run, self._report = run, report
        self._accuracy: float | None = None
        self._reported = 0.0

    def round(self, record: RoundRecord) -> None:
        """Report the round where it is time to."""
        now = time.monotonic()
        if "accuracy" in record.metrics:
            self._accuracy = record.metrics["accuracy"]
        elif now - self._reported < _SECONDS_BETWEEN_REPORTS:
            return
        self._reported = now
        self._report(Advanced(run=self._run, round=record.round, accuracy=self._accuracy))
