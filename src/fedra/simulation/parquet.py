"""Reading a Parquet file that anyone may have written: the columns asked for in their types, or an error."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from fedra.untrusted import clipped, opened

_STORED = {
    "int64": pa.int64(),
    "Int64": pa.int64(),
    "float64": pa.float64(),
    "bool": pa.bool_(),
    "str": pa.large_string(),
    "string": pa.large_string(),
}
_NEVER_MISSING = ("int64", "bool", "str")
# What pyarrow raises for a file that is damaged; MemoryError where it declares more than there can be.
_DAMAGE = (pa.ArrowException, OSError, ValueError, KeyError, TypeError, OverflowError, MemoryError, struct.error)


def read_parquet(
    path: Path,
    types: Mapping[str, str],
    *,
    most: int,
    optional: Sequence[str] = (),
    former_names: Mapping[str, str] | None = None,
) -> pa.Table:
    """Return these columns of a file of at most `most` lines, cast to what their pandas types are stored as.

    Args:
        path: the file.
        types: the pandas type of each column.
        most: how many lines there may be.
        optional: columns that may be missing; texts are empty then.
        former_names: what columns were called in files of earlier versions, by the name of today.

    Raises:
        FileNotFoundError: where there is none.
        ValueError: where anything is not as it should be, with the file's name.
    """
    try:
        with opened(path) as file, pq.ParquetFile(file, page_checksum_verification=True) as parquet:
            names = parquet.schema_arrow.names
            stored = {new: old for new, old in (former_names or {}).items() if new not in names and old in names}
            present = [*names, *stored]
            if missing := [name for name in types if name not in present and name not in optional]:
                raise ValueError(f"no column {', '.join(missing)}")
            if parquet.metadata.num_rows > most:
                raise ValueError(f"{parquet.metadata.num_rows:,} lines where there can be {most:,}")
            wanted = [name for name in types if name in present]
            columns = [stored.get(name, name) for name in wanted]
            table = parquet.read(columns=columns, use_threads=False).select(columns).rename_columns(wanted)
        for name in optional:
            if name in types and types[name] == "str" and name not in present:
                table = table.append_column(name, pa.repeat("", len(table)))
                wanted.append(name)
        table = table.cast(pa.schema([(name, _STORED[types[name]]) for name in wanted]))
        table.validate(full=True)
        for name in wanted:
            if types[name] in _NEVER_MISSING and table[name].null_count:
                raise ValueError(f"column {name} has {table[name].null_count} empty places")
    except FileNotFoundError:
        raise
    except _DAMAGE as error:
        raise ValueError(f"{path} cannot be read ({clipped(error)})") from error
    return table


def empty_table(types: Mapping[str, str]) -> pa.Table:
    """Return a table of no lines, as `read_parquet` would read it."""
    return pa.schema([(name, _STORED[kind]) for name, kind in types.items()]).empty_table()


def as_frame(table: pa.Table, types: Mapping[str, str]) -> pd.DataFrame:
    """Return a table that `read_parquet` has read as a frame of these types."""
    # Whole numbers through Int64: with gaps they would become floats on the way, which not all of them survive.
    frame: pd.DataFrame = table.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get, ignore_metadata=True)
    present: dict[Any, Any] = {name: types[name] for name in frame.columns}
    return frame.astype(present)
