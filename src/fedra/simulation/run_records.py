"""The records of a run: a line for each round, and for each client in each round; for observers, and in files.

Reading them back gives every round that should be there once and in order, or an error that names the file.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from fedra.cohort import Verdict
from fedra.server.records import RoundRecord
from fedra.simulation.measures import class_text, is_class_text, worst_class
from fedra.simulation.parquet import empty_table, read_parquet
from fedra.simulation.round_step import RoundOutcome
from fedra.untrusted import clipped

CHECKPOINT = "checkpoint.safetensors"
PARTS = "parts"
_MOST_LINES = 20_000_000
_MOST_SAMPLED = 2**31 - 1
_PART = re.compile(r"(rounds|clients)-([0-9]{8,18})\.parquet")

_ROUND_TYPES = {
    "round": "int64",
    "num_sampled": "int64",
    "num_malicious": "int64",
    "estimated_malicious": "Int64",
    "num_kept": "int64",
    "caught": "int64",
    "missed": "int64",
    "wrongly_rejected": "int64",
    "accuracy": "float64",
    "attack_success": "float64",
    "note": "str",
    "warnings": "str",
    "class_accuracy": "str",
    "auc": "float64",
}
_CLIENT_TYPES = {
    "round": "int64",
    "client": "int64",
    "malicious": "bool",
    "true_quantity": "int64",
    "claimed_quantity": "float64",
    "implied_quantity": "float64",
    "score": "float64",
    "kept": "bool",
    "weight": "float64",
    "reason": "str",
}
RECORD_TYPES = {"rounds": _ROUND_TYPES, "clients": _CLIENT_TYPES}
_COUNTS = ("num_sampled", "num_malicious", "num_kept", "caught", "missed", "wrongly_rejected")
# Figures that are measured now and then, and the most that each can be.
_MEASURED = {"accuracy": 100.0, "attack_success": 100.0, "auc": 1.0}

# Columns that earlier versions did not write, and the names that they had for others.
_ADDED_COLUMNS = ("warnings", "attack_success", "class_accuracy", "auc")
_FORMER_NAMES = {"wrongly_rejected": "wronged"}

# For each round of a run, how many clients it had.
Sampled = npt.NDArray[np.int64]


def round_frame(outcomes: Iterable[RoundOutcome]) -> pd.DataFrame:
    """Return one line for each round."""
    lines = [
        {
            "round": outcome.round,
            "num_sampled": len(outcome.clients),
            "num_malicious": int(outcome.malicious.sum()),
            "estimated_malicious": outcome.verdict.num_malicious,
            "num_kept": int(outcome.verdict.kept.sum()),
            "caught": outcome.caught,
            "missed": outcome.missed,
            "wrongly_rejected": outcome.wrongly_rejected,
            "accuracy": _or_nan(outcome.accuracy),
            "attack_success": _or_nan(outcome.attack_success),
            "note": outcome.verdict.note,
            "warnings": "; ".join(outcome.verdict.warnings),
            "class_accuracy": class_text(outcome.class_accuracy),
            "auc": _or_nan(outcome.auc),
        }
        for outcome in outcomes
    ]
    return _typed(pd.DataFrame(lines, columns=list(_ROUND_TYPES)), _ROUND_TYPES)


def client_frame(outcomes: Iterable[RoundOutcome]) -> pd.DataFrame:
    """Return one line for each client in each round."""
    frames = [
        pd.DataFrame(
            {
                "round": outcome.round,
                "client": outcome.clients,
                "malicious": outcome.malicious,
                "true_quantity": outcome.true_quantities,
                "claimed_quantity": outcome.claims,
                "implied_quantity": _or_nan(outcome.verdict.implied_quantities),
                "score": _or_nan(outcome.verdict.scores),
                "kept": outcome.verdict.kept,
                "weight": _or_nan(outcome.verdict.weights),
                "reason": outcome.verdict.reasons,
            }
        )
        for outcome in outcomes
    ]
    return _typed(pd.concat(frames) if frames else pd.DataFrame(columns=list(_CLIENT_TYPES)), _CLIENT_TYPES)


def _or_nan(values: Any) -> Any:
    return np.nan if values is None else values


def _typed(frame: pd.DataFrame, types: dict[str, str]) -> pd.DataFrame:
    return frame.astype(types).reset_index(drop=True)


def round_record(outcome: RoundOutcome, *, run: str, time: float) -> RoundRecord:
    """Return what observers are given of a round; its clients' records are made when somebody looks at them.

    Args:
        outcome: the round.
        run: the identifier of the run.
        time: seconds since 1970 at which the round was decided.
    """
    metrics = {
        "caught": float(outcome.caught),
        "missed": float(outcome.missed),
        "wrongly_rejected": float(outcome.wrongly_rejected),
    }
    if outcome.accuracy is not None:
        metrics["accuracy"] = outcome.accuracy
    if outcome.attack_success is not None:
        metrics["attack_success"] = outcome.attack_success
    if outcome.auc is not None:
        metrics["auc"] = outcome.auc
    if (worst := worst_class(class_text(outcome.class_accuracy))) is not None:
        metrics["worst_class_accuracy"] = worst
    return RoundRecord(
        run=run,
        # People count from 1, as platforms do; files of records count from 0.
        round=outcome.round + 1,
        phase="train",
        time=time,
        rule=outcome.verdict.rule,
        num_malicious=outcome.verdict.num_malicious,
        note=outcome.verdict.note,
        clients=_ClientRecords(outcome),
        warnings=outcome.verdict.warnings,
        metrics=metrics,
    )


class _ClientRecords(Sequence[Mapping[str, Any]]):
    """One dictionary for each client of a round, made at the first look: most observers never take one."""

    def __init__(self, outcome: RoundOutcome) -> None:
        # Neither the update nor the rule's state: an observer may keep the records of many rounds.
        self._verdict: Verdict = dataclasses.replace(outcome.verdict, update=None, state=None)
        self._malicious, self._true_quantities = outcome.malicious, outcome.true_quantities

    @cached_property
    def _made(self) -> list[dict[str, Any]]:
        facts = zip(self._verdict.usable, self._malicious, self._true_quantities, strict=True)
        return [
            {**record, "usable": bool(usable), "malicious": bool(malicious), "true_quantity": int(quantity)}
            for record, (usable, malicious, quantity) in zip(self._verdict.to_records(), facts, strict=True)
        ]

    def __len__(self) -> int:
        return len(self._verdict)

    @overload
    def __getitem__(self, place: int) -> Mapping[str, Any]: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Mapping[str, Any]]: ...
    def __getitem__(self, place: int | slice) -> Any:
        return self._made[place]


def parts_of(run: Path) -> dict[str, dict[int, Path]]:
    """Return the parts of a run's records: by record, and by the number of rounds that are done with each."""
    found: dict[str, dict[int, Path]] = {"rounds": {}, "clients": {}}
    folder = run / PARTS
    if folder.is_symlink():
        # Parts that no checkpoint covers are removed, and what lies elsewhere is not this run's to remove.
        raise ValueError(f"{folder} is a link to {str(folder.readlink())!r}; put the folder itself in its place")
    for file in sorted(folder.iterdir()) if os.path.lexists(folder) else ():
        if match := _PART.fullmatch(file.name):
            found[match[1]][int(match[2])] = file
    return found


def read_records(run: Path, *, rounds: int | None, whole: bool) -> dict[str, pa.Table]:
    """Return both records of a run, with as many clients in each round as the round says; see `read_record`."""
    lines = read_record(run, "rounds", rounds=rounds, whole=whole)
    sampled = lines["num_sampled"].to_numpy()
    return {
        "rounds": lines,
        "clients": read_record(run, "clients", rounds=len(sampled), whole=whole, sampled=sampled),
    }


def read_record(
    run: Path,
    name: str,
    *,
    rounds: int | None,
    whole: bool,
    columns: Sequence[str] | None = None,
    sampled: Sampled | None = None,
) -> pa.Table:
    """Return a record of a run, with the column names of today whichever version wrote it.

    Args:
        run: the run's folder.
        name: "rounds" or "clients".
        rounds: how many rounds must be there; None: as many as there are.
        whole: whether it is one file, or parts.
        columns: only these, and those that are looked at in any case.
        sampled: how many clients each round has, where that is known.
    """
    needed = {"rounds": ("round", *_MEASURED, *_COUNTS), "clients": ("round",)}[name]
    kept = {key: kind for key, kind in RECORD_TYPES[name].items() if columns is None or key in (*needed, *columns)}
    if whole:
        file = run / f"{name}.parquet"
        try:
            table = _read_file(file, kept, most=_most(name, 0, rounds, sampled))
        except FileNotFoundError:
            raise ValueError(f"{file} is missing; put it back, or remove {run} to run it again") from None
        _check(file, name, table, 0, _rounds_in(table) if rounds is None else rounds, sampled)
        return table
    tables = []
    done = 0
    for until, file in sorted(parts_of(run)[name].items()):
        if rounds is not None and until > rounds:
            break
        table = _read_file(file, kept, most=_most(name, done, until, sampled))
        _check(file, name, table, done, until, sampled)
        tables.append(table)
        done = until
    if rounds is not None and done < rounds:
        raise ValueError(
            f"{run / PARTS} has no {name} after round {done}, and {rounds} rounds are done; {_remedy(run, whole=False)}"
        )
    return pa.concat_tables(tables) if tables else empty_table(kept)


def _read_file(file: Path, types: Mapping[str, str], *, most: int) -> pa.Table:
    table = read_parquet(file, types, most=most, optional=_ADDED_COLUMNS, former_names=_FORMER_NAMES)
    for place, name in enumerate(types):
        if name not in table.column_names:
            # Not measured: parts that different versions wrote must have the same columns in the same order.
            table = table.add_column(min(place, table.num_columns), name, pa.nulls(len(table), pa.float64()))
    return table.select(list(types))


def _most(name: str, first: int, until: int | None, sampled: Sampled | None) -> int:
    """Return how many lines the record of these rounds can have."""
    if until is None or (name == "clients" and sampled is None):
        return _MOST_LINES
    return min(until - first if sampled is None else int(sampled[first:until].sum()), _MOST_LINES)


def _rounds_in(table: pa.Table) -> int:
    found = table["round"].to_numpy()
    return int(found[-1]) + 1 if len(found) and 0 <= found[-1] < _MOST_LINES else 0


def _check(file: Path, name: str, table: pa.Table, first: int, until: int, sampled: Sampled | None) -> None:
    """Raise where a record is not of the rounds from `first` to before `until`, or has senseless figures."""
    whole = file.parent.name != PARTS
    remedy = _remedy(file.parent if whole else file.parent.parent, whole=whole)
    expected: Any = np.arange(first, min(until, first + _MOST_LINES))
    found = table["round"].to_numpy()
    if name == "clients":
        begins = np.flatnonzero(np.diff(found, prepend=-1))
        expected = np.repeat(expected, sampled[first:until]) if sampled is not None else expected
        found = found if sampled is not None else found[begins]
    if not np.array_equal(found, expected):
        raise ValueError(
            f"{file} does not have the {name} of rounds {first + 1} to {until}: {_content(found)}; {remedy}"
        )
    if name == "rounds" and len(found):
        if table["num_sampled"].to_numpy().max() > _MOST_SAMPLED:
            raise ValueError(f"{file} has num_sampled {table['num_sampled'].to_numpy().max()}; {remedy}")
        for column in _COUNTS:
            values = table[column].to_numpy()
            if not (values.min() >= 0 and (values <= table["num_sampled"].to_numpy()).all()):
                raise ValueError(f"{file} has {column} from {values.min()} to {values.max()}; {remedy}")
        # What is missing is NaN here: accuracy is measured now and then.
        for column, most in _MEASURED.items():
            values = table[column].to_numpy()
            wrong = values[~(np.isnan(values) | ((values >= 0) & (values <= most)))]
            if wrong.size:
                raise ValueError(f"{file} has the {column} {wrong[0]}; {remedy}")
        texts = table["class_accuracy"].unique().to_pylist() if "class_accuracy" in table.column_names else []
        if odd := [text for text in texts if text and not is_class_text(text)]:
            raise ValueError(f"{file} has the class_accuracy {clipped(odd[0], 60)!r}; {remedy}")


def _content(found: npt.NDArray[np.int64]) -> str:
    if not len(found):
        return "it is empty"
    return f"it has {len(found)} lines of {len(np.unique(found))} rounds, {found.min() + 1} to {found.max() + 1}"


def _remedy(run: Path, *, whole: bool) -> str:
    if whole:
        return f"put the right file back, or remove {run} to run it again"
    return f"put the right files back, or remove {run / CHECKPOINT} to start this run again"
