"""A grid's folder: a run folder for each distinct run, which cells show which run, and all results in one table."""

from __future__ import annotations

import json
import os
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from fedra.experiments.cell_table import CELL_TYPES, FIGURE_TYPES, error_text, grid_lines
from fedra.experiments.grid import Grid
from fedra.experiments.jobs import ERROR, Failed
from fedra.files import folder_inside, inside, locked, write_text, write_whole
from fedra.simulation import RunFolder
from fedra.untrusted import MEBIBYTE, clipped, is_file_name, parsed_json, read_bounded

RESULTS = "results"
_LARGEST_ERROR = 16 * MEBIBYTE


@dataclass(frozen=True, kw_only=True)
class GridFolder:
    """Where one or more grids keep their runs; several may share runs, one at a time may write."""

    path: Path

    def locked(self) -> AbstractContextManager[None]:
        """Hold the folder; an error where another grid does."""
        self.path.mkdir(parents=True, exist_ok=True)
        return locked(self.path, f"{self.path} is in use by another fedra grid; wait for it or choose another --out")

    def run(self, name: str) -> Path:
        """Return the folder of a run; a name that leads elsewhere is an error."""
        if not is_file_name(name):
            raise ValueError(f"{clipped(name)} names no run in {self.path / 'runs'}")
        return self.path / "runs" / name

    def check_run(self, name: str) -> None:
        """Raise where a run's folder is elsewhere by a link: it could be read, but not run."""
        inside(self.path, "runs", name)

    def is_done(self, name: str) -> bool:
        """Whether a run is complete, with a result that can be read."""
        return bool(self._figures(name)["status"] == "done")

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

        `status` is done, failed, unfinished or missing; `config` is the run's configuration as JSON. A cell or a run
        that cannot be read is failed, with the reason as its `error`.
        """
        files = sorted(file for file in (self.path / "grids").glob("*.json") if file.is_file())
        if not files:
            raise ValueError(f"{self.path} is not a grid's folder; make one with fedra grid FILE --out {self.path}")
        found: dict[str, dict[str, Any]] = {}
        lines = []
        for line in (line for file in files for line in grid_lines(file)):
            if "status" in line:
                lines.append(line)
                continue
            figures = found.setdefault(line["run"], self._figures(line["run"]))
            lines.append({**line, **_belonging(figures, json.loads(line["config"]))})
        types = {**CELL_TYPES, **FIGURE_TYPES}
        return pd.DataFrame(lines, columns=list(types)).astype(types)

    def write_results(self) -> pd.DataFrame:
        """Write the frame as results.parquet and results.csv, and return it."""
        frame = self.frame()
        write_whole(self.path / f"{RESULTS}.parquet", frame.to_parquet)
        write_whole(self.path / f"{RESULTS}.csv", lambda path: frame.to_csv(path, index=False))
        return frame

    def _figures(self, name: str) -> dict[str, Any]:
        path = self.run(name)
        try:
            result = RunFolder(path=path).result()
        except ValueError as error:
            return {"status": "failed", "error": f"its result cannot be read: {error_text(error)}"}
        if result is not None:
            return {"status": "done", **{key: result.get(key) for key in FIGURE_TYPES}}
        if os.path.lexists(path / ERROR):
            return {"status": "failed", "error": _error(path / ERROR)}
        return {"status": "unfinished" if path.is_dir() else "missing"}


def _error(path: Path) -> str:
    """Return the error that an attempt has left."""
    try:
        left = parsed_json(read_bounded(path, _LARGEST_ERROR))
        if not isinstance(left, dict) or not isinstance(left.get("error"), str):
            raise ValueError(f"{path} has no text named error")
    except (OSError, ValueError) as error:
        return f"its error cannot be read: {error_text(error)}"
    return error_text(left["error"])


def _belonging(figures: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of a run, or a failure where they are of another one."""
    rounds = config.get("rounds", figures.get("rounds"))
    if figures["status"] == "done" and figures["rounds"] != rounds:
        problem = f"its result cannot be read: it is of {figures['rounds']} rounds, the cell of {rounds}"
        return {"status": "failed", "error": problem}
    return figures


def read_results(path: Path | str) -> pd.DataFrame:
    """Return all results of a grid's folder, a line for each cell; see `GridFolder.frame`."""
    return GridFolder(path=Path(path)).frame()
