"""A grid's folder: a run folder for each distinct run, which cells show which run, and all results in one table."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from fedra.experiments.attempt import ERROR
from fedra.experiments.events import Failed
from fedra.experiments.grid import Grid
from fedra.files import folder_inside, inside, locked, write_text, write_whole
from fedra.simulation import RunFolder
from fedra.simulation.folder import RESULT

RESULTS = "results"
_FIGURES = {
    "final_accuracy": "float64",
    "best_accuracy": "float64",
    "best_round": "Int64",
    "filtering_precision": "float64",
    "filtering_recall": "float64",
    "mean_abs_error_malicious": "float64",
    "rounds_without_update": "Int64",
    "rounds": "Int64",
    "seconds": "float64",
    "num_clients": "Int64",
    "num_malicious_clients": "Int64",
    "num_parameters": "Int64",
    "weights_sha256": "string",
}
_CELLS = {
    "grid": "string",
    "dataset": "string",
    "partition": "string",
    "setting": "string",
    "rule": "string",
    "attack": "string",
    "alpha_q": "float64",
    "seed": "Int64",
    "run": "string",
    "status": "string",
    "error": "string",
    "config": "string",
}


@dataclass(frozen=True, kw_only=True)
class GridFolder:
    """Where one or more grids keep their runs; several may share runs, one at a time may write."""

    path: Path

    def locked(self) -> AbstractContextManager[None]:
        """Hold the folder; a second grid that wants it is told."""
        self.path.mkdir(parents=True, exist_ok=True)
        return locked(self.path, f"{self.path} is in use by another fedra grid; wait for it or choose another --out")

    def run(self, name: str) -> Path:
        """Return the folder of a run."""
        return self.path / "runs" / name

    def check_run(self, name: str) -> None:
        """Raise where a run's folder is elsewhere by a link: it could be read, but not run."""
        inside(self.path, "runs", name)

    def is_done(self, name: str) -> bool:
        """Whether a run is complete."""
        return (self.run(name) / RESULT).is_file()

    def record(self, name: str, grid: Grid) -> None:
        """Write down which cells a grid has and which runs they show; an earlier grid of that name is replaced."""
        cells = [{**cell.labels, "run": cell.run, "config": cell.config.to_dict()} for cell in grid.cells]
        text = json.dumps(cells, indent=1, default=str) + "\n"
        write_text(folder_inside(self.path, "grids") / f"{name}.json", text)

    def record_failure(self, failed: Failed) -> None:
        """Leave the error in the run's folder, until the run is tried again."""
        text = json.dumps({"error": failed.error, "traceback": failed.trace}, indent=2) + "\n"
        write_text(folder_inside(self.path, "runs", failed.run) / ERROR, text)

    def frame(self) -> pd.DataFrame:
        """Return a line for each cell of all grids: its labels, its run, and the run's figures as far as it has any.

        `status` is done, failed, unfinished or missing; `config` is the run's configuration as JSON.
        """
        files = sorted(file for file in (self.path / "grids").glob("*.json") if file.is_file())
        if not files:
            raise ValueError(f"{self.path} is not a grid's folder; make one with fedra grid FILE --out {self.path}")
        found: dict[str, dict[str, Any]] = {}
        lines = []
        for file in files:
            for cell in json.loads(file.read_text(encoding="utf-8")):
                figures = found.setdefault(cell["run"], self._figures(cell["run"]))
                settings = {key: value for key, value in cell["config"].items() if value is not None}
                lines.append({"grid": file.stem, **cell, **figures, "config": json.dumps(settings, sort_keys=True)})
        types = {**_CELLS, **_FIGURES}
        return pd.DataFrame(lines, columns=list(types)).astype(types)

    def write_results(self) -> pd.DataFrame:
        """Write the frame as results.parquet and results.csv, and return it."""
        frame = self.frame()
        write_whole(self.path / f"{RESULTS}.parquet", frame.to_parquet)
        write_whole(self.path / f"{RESULTS}.csv", lambda path: frame.to_csv(path, index=False))
        return frame

    def _figures(self, name: str) -> dict[str, Any]:
        path = self.run(name)
        result = RunFolder(path=path).result()
        if result is not None:
            return {"status": "done", **{key: result[key] for key in _FIGURES}}
        if (path / ERROR).is_file():
            return {"status": "failed", "error": json.loads((path / ERROR).read_text(encoding="utf-8"))["error"]}
        return {"status": "unfinished" if path.is_dir() else "missing"}


def read_results(path: Path | str) -> pd.DataFrame:
    """Return all results of a grid's folder, a line for each cell; see `GridFolder.frame`."""
    return GridFolder(path=Path(path)).frame()
