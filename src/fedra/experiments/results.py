"""All that a report needs of a grid's folder, as three small tables that can be committed in the place of the runs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from fedra.experiments.cell_table import CELL_TYPES, FIGURE_TYPES, error_text, read_line
from fedra.experiments.grid_folder import GridFolder
from fedra.experiments.treatment import TREATMENT_COLUMNS, TREATMENT_TYPES, treatment
from fedra.files import folder_inside, write_whole
from fedra.simulation.parquet import as_frame, read_parquet
from fedra.simulation.run_records import read_record

CELLS, CURVES, SCORES = "results.parquet", "curves.parquet", "scores.parquet"
# Where scores are counted: powers of ten of a round's median score. What lies beyond falls into the outer bins.
SCORE_EDGES = np.linspace(-1.0, 3.0, 41)
SCORED_ROUNDS = 50

Progress = Callable[[int, int], None]

CURVE_TYPES = {
    "run": "string",
    "round": "int64",
    "accuracy": "float64",
    "caught": "int64",
    "missed": "int64",
    "wrongly_rejected": "int64",
    "estimate_error": "float64",
}
# Under which name a column was written before, by its name of today.
_FORMER_NAMES = {"wrongly_rejected": "wronged"}
SCORE_TYPES = {"run": "string", "malicious": "bool", "low": "float64", "high": "float64", "count": "int64"}

CELL_KEY = ("grid", "dataset", "partition", "setting", "rule", "attack", "alpha_q", "seed", "run")
"""What tells one line of the cells from another."""

_NEEDED = (
    *("grid", "dataset", "partition", "setting", "rule", "attack", "alpha_q", "seed"),
    *("run", "status", "error", "config", "final_accuracy", "num_clients"),
    *("filtering_precision", "filtering_recall", "mean_abs_error_malicious"),
)
_MOST = {CELLS: 100_000, CURVES: 10_000_000, SCORES: 10_000_000}
_MOST_COUNTED = 2**53
# Edges as they are written into a page.
_DIGITS = 4
_PATHS = ("data_dir",)


@dataclass(frozen=True, eq=False, kw_only=True)
class Results:
    """What grids have found, without their run folders; accuracies in percent.

    Attributes:
        cells: a line for each cell, as `GridFolder.frame` has them, without the place of the data, and with the
            figures of `treatment`, which files of earlier versions do not have. A cell that cannot be read is failed,
            and a run whose records cannot be has an error.
        curves: a line for each measurement of a run: `round` rounds were done and gave `accuracy`; malicious clients
            caught and missed and honest ones wrongly rejected since the line before, and the mean error of the
            estimated number of malicious clients where the rule estimates one.
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
        if os.path.lexists(path / CELLS):
            cells, curves, scores = read_compact(path)
            return cls(cells=cells, curves=curves, scores=scores)
        raise ValueError(
            f"{path} holds no results: neither grids/ and runs/, as fedra grid and fedra paper write them, "
            f"nor {CELLS}, {CURVES} and {SCORES}"
        )

    @property
    def done(self) -> frozenset[str]:
        """The names of the runs that are complete."""
        return frozenset(self.cells.loc[self.cells["status"] == "done", "run"])

    def added_to(self, earlier: Results) -> Results:
        """Return these results and what others hold besides, such as those of runs whose folders are gone.

        A run of both is taken from here, unless it is done only there. Grids, cells and runs keep their names; a cell
        of either whose run is done has its figures.
        """
        own = self.done | (set(self.cells["run"]) - earlier.done)
        key = [*CELL_KEY]
        both = pd.concat([self.cells[self.cells["run"].isin(own)], earlier.cells, self.cells], ignore_index=True)

        def joined(now: pd.DataFrame, before: pd.DataFrame, types: dict[str, str]) -> pd.DataFrame:
            return _joined([now[now["run"].isin(own)], before[~before["run"].isin(own)]], types)

        return Results(
            cells=_with_figures(both.drop_duplicates(key, ignore_index=True)).astype(_types_of(both)),
            curves=joined(self.curves, earlier.curves, CURVE_TYPES),
            scores=joined(self.scores, earlier.scores, SCORE_TYPES),
        )

    def write(self, path: Path | str) -> None:
        """Write the three tables into a folder."""
        folder = folder_inside(Path(path))
        for name, frame in ((CELLS, self.cells), (CURVES, self.curves), (SCORES, self.scores)):
            words = {column: "category" for column in frame.columns if frame[column].dtype == "string"}
            table = pa.Table.from_pandas(frame.astype(words), preserve_index=False)
            write_whole(folder / name, partial(pq.write_table, table, compression="zstd"))


def _from_runs(path: Path, progress: Progress | None) -> Results:
    folder = GridFolder(path=path)
    cells = _without_paths(folder.frame())
    known = cells.loc[cells["status"] != "missing"].drop_duplicates("run")
    curves: list[pd.DataFrame] = []
    scores: list[pd.DataFrame] = []
    treated: dict[str, dict[str, float]] = {}
    unreadable: dict[str, str] = {}

    def condense_clients(name: str, clients: dict[str, npt.NDArray[Any]]) -> pd.DataFrame:
        treated[name] = treatment(clients)
        return _histogram(name, clients)

    for number, (name, rounds) in enumerate(zip(known["run"], known["rounds"], strict=True), start=1):
        for record, condensed, found in (("rounds", _curve, curves), ("clients", condense_clients, scores)):
            try:
                found.append(condensed(name, _columns(folder.run(name), record, rounds)))
            except (OSError, ValueError) as error:
                unreadable.setdefault(name, f"its {record} cannot be read: {error_text(error)}")
        if progress is not None:
            progress(number, len(known))
    return Results(
        cells=with_errors(_with_treatment(cells, treated), unreadable),
        curves=_joined(curves, CURVE_TYPES),
        scores=_joined(scores, SCORE_TYPES),
    )


def _with_treatment(cells: pd.DataFrame, treated: Mapping[str, Mapping[str, float]]) -> pd.DataFrame:
    """Return the cells with these figures of the runs that are done."""
    done = cells["status"] == "done"
    columns: dict[str, Any] = {
        name: cells["run"].map({run: figures[name] for run, figures in treated.items()}).where(done)
        for name in TREATMENT_TYPES
    }
    types: dict[str, Any] = dict(TREATMENT_TYPES)
    return cells.assign(**columns).astype(types)


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
    "rounds": ["round", "num_malicious", "estimated_malicious", "caught", "missed", "wrongly_rejected", "accuracy"],
    "clients": [*TREATMENT_COLUMNS, "score"],
}


def _columns(run: Path, name: str, rounds: Any) -> dict[str, npt.NDArray[Any]]:
    """Return the columns that are needed of a run's record, whole or as far as it goes; NA rounds: not known."""
    done = None if pd.isna(rounds) else int(rounds)
    whole = done is not None or os.path.lexists(run / f"{name}.parquet")
    table = read_record(run, name, rounds=done, whole=whole, columns=_COLUMNS[name])
    return {column: table[column].to_numpy() for column in _COLUMNS[name]}


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
            "wrongly_rejected": since(rounds["wrongly_rejected"]),
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
    ratios = np.zeros(len(scores))
    # Scores at the end of what a float holds overflow on the way, and fall into the outer bins as they should.
    with np.errstate(over="ignore", invalid="ignore"):
        medians = np.array([np.median(scores[place == number]) for number in range(len(numbers))])
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


def _with_figures(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells, those that are not done with the figures of their run where another cell has them."""
    done = cells["status"] == "done"
    known = cells[done].drop_duplicates("run").set_index("run")
    lacking = ~done & cells["run"].isin(known.index)
    if not lacking.any():
        return cells
    filled = cells.copy()
    for name in cells.columns.difference([*CELL_KEY, "config"]):
        filled.loc[lacking, name] = known[name].reindex(cells.loc[lacking, "run"]).array
    return filled


def _types_of(cells: pd.DataFrame) -> dict[Any, Any]:
    types = {**CELL_TYPES, **FIGURE_TYPES, **TREATMENT_TYPES}
    return {name: types[name] for name in cells.columns if name in types}


def _joined(frames: list[pd.DataFrame], types: dict[str, str]) -> pd.DataFrame:
    filled = [frame for frame in frames if len(frame)]
    whole = pd.concat(filled, ignore_index=True) if filled else pd.DataFrame(columns=list(types))
    return whole.astype(types)


def read_compact(path: Path) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return cells, curves and scores of a folder."""
    types = {**CELL_TYPES, **FIGURE_TYPES, **TREATMENT_TYPES}
    optional = [name for name in types if name not in _NEEDED]
    cells = _read(path / CELLS, types, optional)
    curves, scores = _read(path / CURVES, CURVE_TYPES, renamed=_FORMER_NAMES), _read(path / SCORES, SCORE_TYPES)
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
    own = cells["run"].map(dict(errors)).astype("string")
    return cells.assign(error=cells["error"].fillna(own))


def _read(
    path: Path, types: Mapping[str, str], optional: Sequence[str] = (), renamed: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """Return the columns of a file; `renamed` has the former name of a column, which is read where the new is not."""
    former = renamed or {}
    known = {**types, **{before: types[name] for name, before in former.items()}}
    try:
        table = read_parquet(path, known, most=_MOST[path.name], optional=[*optional, *former, *former.values()])
        frame = as_frame(table, known)
        frame = frame.rename(columns={before: name for name, before in former.items() if name not in frame})
        if missing := [name for name in former if name not in frame]:
            raise ValueError(f"{path} cannot be read (no column {', '.join(missing)})")
    except (FileNotFoundError, ValueError) as error:
        problem = f"{path} cannot be read (no such file)" if isinstance(error, OSError) else str(error)
        raise ValueError(
            f"{problem}; {CELLS}, {CURVES} and {SCORES} belong together: write them with fedra report --compact"
        ) from error
    return frame[[name for name in types if name in frame]]


def _odd_curves(curves: pd.DataFrame) -> npt.NDArray[np.bool_]:
    accuracy, errors = curves["accuracy"].to_numpy(), curves["estimate_error"].to_numpy()
    fits = (np.isnan(accuracy) | ((accuracy >= 0) & (accuracy <= 100))) & (np.isnan(errors) | (np.abs(errors) < np.inf))
    for name in ("round", "caught", "missed", "wrongly_rejected"):
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
    problems = {
        str(line["run"]): f"{problem}: {', '.join(f'{key} {line[key]}' for key in frame.columns if key != 'run')}"
        for line in first.to_dict("records")
    }
    return frame[~runs].reset_index(drop=True), problems
