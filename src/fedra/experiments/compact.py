"""All that a report needs of a grid's folder, as three small tables that can be committed in the place of the runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from fedra.experiments.folder import GridFolder
from fedra.files import folder_inside, write_whole

CELLS, CURVES, SCORES = "results.parquet", "curves.parquet", "scores.parquet"
# Where scores are counted: powers of ten of a round's median score. What lies beyond falls into the outer bins.
SCORE_EDGES = np.linspace(-1.0, 3.0, 41)
SCORED_ROUNDS = 50

Progress = Callable[[int, int], None]

_CURVE_TYPES = {
    "run": "string",
    "round": "int64",
    "accuracy": "float64",
    "caught": "int64",
    "missed": "int64",
    "wronged": "int64",
    "estimate_error": "float64",
}
_SCORE_TYPES = {"run": "string", "malicious": "bool", "low": "float64", "high": "float64", "count": "int64"}
_CELL_COLUMNS = (
    *("grid", "dataset", "partition", "setting", "rule", "attack", "alpha_q", "seed"),
    *("run", "status", "error", "config", "final_accuracy", "num_clients"),
    *("filtering_precision", "filtering_recall", "mean_abs_error_malicious"),
)
_PATHS = ("data_dir",)


@dataclass(frozen=True, eq=False, kw_only=True)
class Results:
    """What grids have found, without their run folders; accuracies in percent.

    Attributes:
        cells: a line for each cell, as `GridFolder.frame` has them, without the place of the data.
        curves: a line for each measurement of a run: `round` rounds were done and gave `accuracy`; malicious clients
            caught and missed and honest ones wronged since the line before, and the mean of |m~ - m| where the rule
            estimated.
        scores: histograms of log10(score / median score of the round) over a run's last 50 rounds, for rules that
            score: how many (`count`) from `low` to `high`; bins with none are left out.
    """

    cells: pd.DataFrame
    curves: pd.DataFrame
    scores: pd.DataFrame

    @classmethod
    def read(cls, path: Path | str, progress: Progress | None = None) -> Results:
        """Read a grid's folder, or one that `write` made.

        Args:
            path: the folder.
            progress: called with how many runs are read, and of how many.

        Raises:
            ValueError: where the folder is neither. A run that is damaged is no error: its cells say so.
        """
        path = Path(path)
        if (path / "grids").is_dir():
            return _from_runs(path, progress)
        if (path / CELLS).is_file():
            return _from_files(path)
        raise ValueError(
            f"{path} holds no results: neither grids/ and runs/, as fedra grid and fedra paper write them, "
            f"nor {CELLS}, {CURVES} and {SCORES}"
        )

    def write(self, path: Path | str) -> None:
        """Write the three tables into a folder."""
        folder = folder_inside(Path(path))
        for name, frame in ((CELLS, self.cells), (CURVES, self.curves), (SCORES, self.scores)):
            words = {column: "category" for column in frame.columns if frame[column].dtype == "string"}
            table = pa.Table.from_pandas(frame.astype(words), preserve_index=False)
            write_whole(folder / name, partial(pq.write_table, table, compression="zstd"))


@dataclass(frozen=True, kw_only=True)
class _ForgivingFolder(GridFolder):
    """A grid's folder in which a damaged run is a failed one."""

    def _figures(self, name: str) -> dict[str, Any]:
        try:
            figures = super()._figures(name)
            numbers = (value for key, value in figures.items() if key not in ("status", "error", "weights_sha256"))
            if not all(value is None or isinstance(value, int | float) for value in numbers):
                raise ValueError("a figure is not a number")
        except (OSError, ValueError, KeyError, TypeError) as error:
            return {"status": "failed", "error": f"its result cannot be read: {type(error).__name__}: {error}"}
        return figures


def _from_files(path: Path) -> Results:
    frames = []
    for name in (CELLS, CURVES, SCORES):
        try:
            if not (path / name).is_file():
                raise OSError("no file is there")
            frame = pq.read_table(path / name).to_pandas()
        except (OSError, pa.ArrowException) as error:
            raise ValueError(f"{path / name} cannot be read ({error}); {CURVES} and {SCORES} belong to {CELLS}") from (
                error
            )
        words = {column: "string" for column in frame.columns if isinstance(frame[column].dtype, pd.CategoricalDtype)}
        frames.append(frame.astype(words))
    cells, curves, scores = frames
    for name, frame, needed in (
        (CELLS, cells, _CELL_COLUMNS),
        (CURVES, curves, tuple(_CURVE_TYPES)),
        (SCORES, scores, tuple(_SCORE_TYPES)),
    ):
        if missing := [column for column in needed if column not in frame.columns]:
            raise ValueError(f"{path / name} has no column {', '.join(missing)}; write it with fedra report --compact")
    return Results(cells=cells, curves=curves.astype(_CURVE_TYPES), scores=scores.astype(_SCORE_TYPES))


def _from_runs(path: Path, progress: Progress | None) -> Results:
    folder = _ForgivingFolder(path=path)
    try:
        cells = folder.frame()
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
        raise ValueError(
            f"a file in {path / 'grids'} is damaged ({type(error).__name__}: {error}); "
            "call fedra grid or fedra paper again to write it anew"
        ) from error
    cells = _without_paths(cells)
    names = cells.loc[cells["status"] != "missing", "run"].unique().tolist()
    curves: list[pd.DataFrame] = []
    scores: list[pd.DataFrame] = []
    unreadable: dict[str, str] = {}
    for number, name in enumerate(names, start=1):
        for record, condensed, found in (("rounds", _curve, curves), ("clients", _histogram, scores)):
            try:
                found.append(condensed(name, _columns(folder.run(name), record)))
            except (OSError, KeyError, ValueError, pa.ArrowException) as error:
                unreadable[name] = f"its {record} cannot be read: {type(error).__name__}: {error}"
        if progress is not None:
            progress(number, len(names))
    told = cells["run"].map(unreadable).astype("string")
    cells["error"] = cells["error"].fillna(told)
    return Results(cells=cells, curves=_joined(curves, _CURVE_TYPES), scores=_joined(scores, _SCORE_TYPES))


def _without_paths(cells: pd.DataFrame) -> pd.DataFrame:
    """Drop where the data lay: it says nothing about the results, and is nobody's business."""
    configs = [json.loads(text) for text in cells["config"]]
    errors = list(cells["error"])
    for number, config in enumerate(configs):
        for key in _PATHS:
            place = config.pop(key, None)
            if place and isinstance(errors[number], str):
                errors[number] = errors[number].replace(str(place), key)
    texts = [json.dumps(config, sort_keys=True) for config in configs]
    return cells.assign(config=pd.array(texts, dtype="string"), error=pd.array(errors, dtype="string"))


_COLUMNS = {
    "rounds": ["round", "num_malicious", "estimated_malicious", "caught", "missed", "wronged", "accuracy"],
    "clients": ["round", "malicious", "score"],
}


def _columns(run: Path, name: str) -> dict[str, npt.NDArray[Any]]:
    """Return the columns that are needed of a run's record, whole or as far as it goes."""
    columns = _COLUMNS[name]
    whole = run / f"{name}.parquet"
    files = [whole] if whole.is_file() else sorted((run / "parts").glob(f"{name}-*.parquet"))
    tables = [pq.ParquetFile(file).read(columns=columns) for file in files if file.is_file()]
    if not tables:
        return {column: np.empty(0) for column in columns}
    table = pa.concat_tables(tables)
    return {column: table[column].to_numpy() for column in columns}


def _curve(name: str, rounds: dict[str, npt.NDArray[Any]]) -> pd.DataFrame:
    measured = np.flatnonzero(~np.isnan(rounds["accuracy"]))
    first = np.concatenate([[0], measured[:-1] + 1]).astype(np.intp)[: len(measured)]
    errors = np.abs(rounds["estimated_malicious"].astype(np.float64) - rounds["num_malicious"])
    known = ~np.isnan(errors)

    def since(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.array([values[begin : end + 1].sum() for begin, end in zip(first, measured, strict=True)])

    counts, sums = since(known), since(np.where(known, errors, 0.0))
    return pd.DataFrame(
        {
            "run": name,
            "round": rounds["round"][measured] + 1,
            "accuracy": rounds["accuracy"][measured],
            "caught": since(rounds["caught"]),
            "missed": since(rounds["missed"]),
            "wronged": since(rounds["wronged"]),
            "estimate_error": np.divide(sums, counts, out=np.full(len(measured), np.nan), where=counts > 0),
        }
    )


def _histogram(name: str, clients: dict[str, npt.NDArray[Any]]) -> pd.DataFrame:
    rounds, scores = clients["round"], clients["score"].astype(np.float64)
    late = np.isfinite(scores)
    if len(rounds):
        late &= rounds > rounds.max() - SCORED_ROUNDS
    rounds, scores, malicious = rounds[late], scores[late], clients["malicious"][late].astype(bool)
    numbers, place = np.unique(rounds, return_inverse=True)
    medians = np.array([np.median(scores[place == number]) for number in range(len(numbers))])
    ratios = np.zeros(len(scores))
    # Scores that are not above 0 have no logarithm; they are the least there are.
    np.divide(scores, medians[place], out=ratios, where=medians[place] > 0)
    powers = np.full(len(ratios), SCORE_EDGES[0])
    np.log10(ratios, out=powers, where=ratios > 0)
    powers = np.clip(powers, SCORE_EDGES[0], SCORE_EDGES[-1])
    lines = []
    for kind in (False, True):
        counts, _ = np.histogram(powers[malicious == kind], bins=SCORE_EDGES)
        filled = np.flatnonzero(counts)
        lines.append(
            pd.DataFrame(
                {
                    "run": name,
                    "malicious": kind,
                    "low": SCORE_EDGES[filled],
                    "high": SCORE_EDGES[filled + 1],
                    "count": counts[filled],
                }
            )
        )
    return pd.concat(lines, ignore_index=True)


def _joined(frames: list[pd.DataFrame], types: dict[str, str]) -> pd.DataFrame:
    filled = [frame for frame in frames if len(frame)]
    whole = pd.concat(filled, ignore_index=True) if filled else pd.DataFrame(columns=list(types))
    return whole.astype(types)
