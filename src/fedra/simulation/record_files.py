"""Reading a run's records back: every round that should be there once and in order, or an error that names the file."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fedra.simulation.parquet import read_parquet
from fedra.simulation.records import RECORD_TYPES

CHECKPOINT = "checkpoint.safetensors"
PARTS = "parts"
_MOST_LINES = 20_000_000
_MOST_SAMPLED = 2**31 - 1
_PART = re.compile(r"(rounds|clients)-([0-9]{8,18})\.parquet")
# Columns that earlier versions did not write.
_LATER = ("warnings",)
_COUNTS = ("num_sampled", "num_malicious", "num_kept", "caught", "missed", "wronged")

# Rounds of a run and, for each of them, how many clients it had.
Sampled = npt.NDArray[np.int64]


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
    told = read_record(run, "rounds", rounds=rounds, whole=whole)
    sampled = told["num_sampled"].to_numpy()
    return {
        "rounds": told,
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
    """Return a record of a run.

    Args:
        run: the run's folder.
        name: "rounds" or "clients".
        rounds: how many rounds must be there; None: as many as there are.
        whole: whether it is one file, or parts.
        columns: only these, and those that are looked at in any case.
        sampled: how many clients each round has, where that is known.
    """
    needed = {"rounds": ("round", "accuracy", *_COUNTS), "clients": ("round",)}[name]
    kept = {key: kind for key, kind in RECORD_TYPES[name].items() if columns is None or key in (*needed, *columns)}
    if whole:
        file = run / f"{name}.parquet"
        try:
            table = read_parquet(file, kept, most=_most(name, 0, rounds, sampled), optional=_LATER)
        except FileNotFoundError:
            raise ValueError(f"{file} is missing; put it back, or remove {run} to run it again") from None
        _check(file, name, table, 0, _rounds_in(table) if rounds is None else rounds, sampled)
        return table
    tables = []
    done = 0
    for until, file in sorted(parts_of(run)[name].items()):
        if rounds is not None and until > rounds:
            break
        table = read_parquet(file, kept, most=_most(name, done, until, sampled), optional=_LATER)
        _check(file, name, table, done, until, sampled)
        tables.append(table)
        done = until
    if rounds is not None and done < rounds:
        raise ValueError(
            f"{run / PARTS} has no {name} after round {done}, and {rounds} rounds are done; {_remedy(run, whole=False)}"
        )
    return pa.concat_tables(tables) if tables else _empty(kept)


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
            f"{file} does not have the {name} of rounds {first} to {until - 1}: {_said(found, name)}; {remedy}"
        )
    if name == "rounds" and len(found):
        if table["num_sampled"].to_numpy().max() > _MOST_SAMPLED:
            raise ValueError(f"{file} has num_sampled {table['num_sampled'].to_numpy().max()}; {remedy}")
        for column in _COUNTS:
            values = table[column].to_numpy()
            if not (values.min() >= 0 and (values <= table["num_sampled"].to_numpy()).all()):
                raise ValueError(f"{file} has {column} from {values.min()} to {values.max()}; {remedy}")
        # What is missing is NaN here: accuracy is measured now and then.
        accuracy = table["accuracy"].to_numpy()
        wrong = accuracy[~(np.isnan(accuracy) | ((accuracy >= 0) & (accuracy <= 100)))]
        if wrong.size:
            raise ValueError(f"{file} has the accuracy {wrong[0]}; {remedy}")


def _said(found: npt.NDArray[np.int64], name: str) -> str:
    if not len(found):
        return "it is empty"
    return f"it has {len(found)} lines of {len(np.unique(found))} rounds, {found.min()} to {found.max()}"


def _remedy(run: Path, *, whole: bool) -> str:
    if whole:
        return f"put the right file back, or remove {run} to run it again"
    return f"put the right files back, or remove {run / CHECKPOINT} to start this run again"


def _empty(types: dict[str, str]) -> pa.Table:
    stored = {"int64": pa.int64(), "Int64": pa.int64(), "float64": pa.float64(), "bool": pa.bool_()}
    return pa.table({name: pa.array([], stored.get(kind, pa.large_string())) for name, kind in types.items()})
