"""Compact results read back from their three files: a line or a run that makes no sense is told, the others stay."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fedra.experiments.cells import CELL_TYPES, FIGURE_TYPES, read_line
from fedra.simulation.parquet import as_frame, read_parquet

CELLS, CURVES, SCORES = "results.parquet", "curves.parquet", "scores.parquet"
# Where scores are counted: powers of ten of a round's median score. What lies beyond falls into the outer bins.
SCORE_EDGES = np.linspace(-1.0, 3.0, 41)
CURVE_TYPES = {
    "run": "string",
    "round": "int64",
    "accuracy": "float64",
    "caught": "int64",
    "missed": "int64",
    "wronged": "int64",
    "estimate_error": "float64",
}
SCORE_TYPES = {"run": "string", "malicious": "bool", "low": "float64", "high": "float64", "count": "int64"}

_NEEDED = (
    *("grid", "dataset", "partition", "setting", "rule", "attack", "alpha_q", "seed"),
    *("run", "status", "error", "config", "final_accuracy", "num_clients"),
    *("filtering_precision", "filtering_recall", "mean_abs_error_malicious"),
)
_MOST = {CELLS: 100_000, CURVES: 10_000_000, SCORES: 10_000_000}
_MOST_COUNTED = 2**53
# Edges as they are written into a page.
_DIGITS = 4


def read_compact(path: Path) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return cells, curves and scores of a folder."""
    types = {**CELL_TYPES, **FIGURE_TYPES}
    optional = [name for name in types if name not in _NEEDED]
    cells = _read(path / CELLS, types, optional)
    curves, scores = _read(path / CURVES, CURVE_TYPES), _read(path / SCORES, SCORE_TYPES)
    lines = cells.astype(object).where(cells.notna(), None).to_dict("records")
    made = pd.DataFrame(
        [read_line(number, {str(key): value for key, value in line.items()}) for number, line in enumerate(lines, 1)],
        columns=list(cells.columns),
    ).astype({name: types[str(name)] for name in cells.columns})
    curves, odd_curves = _without(curves, _odd_curves(curves), "its curve cannot be read")
    scores, odd_scores = _without(scores, _odd_scores(scores), "its scores cannot be read")
    return with_errors(made, {**odd_scores, **odd_curves}), curves, scores


def with_errors(cells: pd.DataFrame, errors: Mapping[str, str]) -> pd.DataFrame:
    """Return the cells with the error of each run that has one here and none yet."""
    told = cells["run"].map(dict(errors)).astype("string")
    return cells.assign(error=cells["error"].fillna(told))


def _read(path: Path, types: Mapping[str, str], optional: list[str] | None = None) -> pd.DataFrame:
    try:
        return as_frame(read_parquet(path, types, most=_MOST[path.name], optional=optional or ()), types)
    except (FileNotFoundError, ValueError) as error:
        said = f"{path} cannot be read (no such file)" if isinstance(error, OSError) else str(error)
        raise ValueError(
            f"{said}; {CELLS}, {CURVES} and {SCORES} belong together: write them with fedra report --compact"
        ) from error


def _odd_curves(curves: pd.DataFrame) -> npt.NDArray[np.bool_]:
    accuracy, errors = curves["accuracy"].to_numpy(), curves["estimate_error"].to_numpy()
    fits = (np.isnan(accuracy) | ((accuracy >= 0) & (accuracy <= 100))) & (np.isnan(errors) | (np.abs(errors) < np.inf))
    for name in ("round", "caught", "missed", "wronged"):
        fits &= (curves[name].to_numpy() >= 0) & (curves[name].to_numpy() <= _MOST_COUNTED)
    return np.asarray(~fits)


def _odd_scores(scores: pd.DataFrame) -> npt.NDArray[np.bool_]:
    bins = {(float(low), float(high)) for low, high in zip(*_rounded(SCORE_EDGES[:-1], SCORE_EDGES[1:]), strict=True)}
    places = zip(*_rounded(scores["low"].to_numpy(), scores["high"].to_numpy()), strict=True)
    known = np.fromiter((place in bins for place in places), dtype=bool, count=len(scores))
    counts = scores["count"].to_numpy()
    return np.asarray(~known | (counts < 0) | (counts > _MOST_COUNTED))


def _rounded(*edges: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
    return [np.round(values, _DIGITS) for values in edges]


def _without(frame: pd.DataFrame, odd: npt.NDArray[np.bool_], problem: str) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return a frame without the runs that have an odd line, and what to say of those."""
    runs = frame["run"].isna().to_numpy() | frame["run"].isin(frame["run"][odd]).to_numpy(dtype=bool)
    first = frame[odd].dropna(subset=["run"]).drop_duplicates("run")
    told = {
        str(line["run"]): f"{problem}: {', '.join(f'{key} {line[key]}' for key in frame.columns if key != 'run')}"
        for line in first.to_dict("records")
    }
    return frame[~runs].reset_index(drop=True), told
