from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fedra.simulation.parquet import as_frame, empty_table, read_parquet

TYPES = {"round": "int64", "estimate": "Int64", "accuracy": "float64", "kept": "bool", "note": "str"}


def frame() -> pd.DataFrame:
    values = {
        "round": [0, 1],
        "estimate": [2**53 + 1, None],
        "accuracy": [np.nan, 50.0],
        "kept": [True, False],
        "note": ["", "none"],
    }
    return pd.DataFrame(values).astype({**TYPES})


def stored(path: Path, content: pd.DataFrame) -> Path:
    content.to_parquet(path / "x.parquet")
    return path / "x.parquet"


def test_columns_come_back_in_their_types_and_order(tmp_path: Path) -> None:
    file = stored(tmp_path, frame()[list(reversed(TYPES))].assign(stranger=1))
    pd.testing.assert_frame_equal(as_frame(read_parquet(file, TYPES, most=2), TYPES), frame())
    some = {name: TYPES[name] for name in ("kept", "round")}
    assert read_parquet(file, some, most=2).column_names == ["kept", "round"]


def test_no_lines_have_the_same_types(tmp_path: Path) -> None:
    empty = empty_table(TYPES)
    assert len(empty) == 0
    assert empty.schema == read_parquet(stored(tmp_path, frame()), TYPES, most=2).schema.remove_metadata()
    assert as_frame(empty, TYPES).dtypes.equals(frame().dtypes)


def test_columns_are_found_by_their_former_names(tmp_path: Path) -> None:
    file = stored(tmp_path, frame().rename(columns={"kept": "stays", "note": "remark"}))
    former = {"kept": "stays", "note": "remark", "round": "number"}
    pd.testing.assert_frame_equal(as_frame(read_parquet(file, TYPES, most=2, former_names=former), TYPES), frame())
    with pytest.raises(ValueError, match=r"x\.parquet cannot be read \(no column kept, note\)"):
        read_parquet(file, TYPES, most=2)


def test_texts_that_earlier_versions_did_not_write_are_empty(tmp_path: Path) -> None:
    file = stored(tmp_path, frame().drop(columns="note"))
    assert read_parquet(file, TYPES, most=2, optional=["note"])["note"].to_pylist() == ["", ""]


def test_what_is_not_as_it_should_be_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_parquet(tmp_path / "none.parquet", TYPES, most=2)
    file = stored(tmp_path, frame())
    with pytest.raises(ValueError, match="2 lines where there can be 1"):
        read_parquet(file, TYPES, most=1)
    with pytest.raises(ValueError, match=r"x\.parquet cannot be read"):
        read_parquet(stored(tmp_path, frame().assign(round="many")), TYPES, most=2)
    gaps = frame().astype({"round": "Int64"})
    gaps.loc[1, "round"] = None
    with pytest.raises(ValueError, match="column round has 1 empty places"):
        read_parquet(stored(tmp_path, gaps), TYPES, most=2)
    file.write_bytes(b"PAR1 no more")
    with pytest.raises(ValueError, match=r"x\.parquet cannot be read"):
        read_parquet(file, TYPES, most=2)
