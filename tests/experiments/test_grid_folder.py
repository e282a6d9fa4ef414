from __future__ import annotations

from pathlib import Path

import pytest

from fedra.experiments import Grid, GridFolder, read_results

GRID = Grid.from_dict({"rules": ["fedavg", "median"], "attacks": ["lie"], "alpha_q": [0, 10]})


def test_a_second_holder_is_told(tmp_path: Path) -> None:
    with GridFolder(path=tmp_path / "g").locked():
        with (
            pytest.raises(ValueError, match="is in use by another fedra grid"),
            GridFolder(path=tmp_path / "g").locked(),
        ):
            pytest.fail("both hold it")
        assert (tmp_path / "g").is_dir()
    with GridFolder(path=tmp_path / "g").locked():
        pass


def test_what_has_not_run_is_missing(tmp_path: Path) -> None:
    folder = GridFolder(path=tmp_path)
    folder.record("g", GRID)
    folder.run(GRID.cells[0].run).mkdir(parents=True)
    frame = folder.frame()
    assert list(frame["status"]) == ["unfinished", "missing", "missing", "missing"]
    assert frame["final_accuracy"].isna().all()
    assert list(frame["grid"].unique()) == ["g"]


def test_grids_share_a_folder_and_the_last_of_a_name_counts(tmp_path: Path) -> None:
    folder = GridFolder(path=tmp_path)
    folder.record("a", GRID)
    folder.record("b", Grid.from_dict({"rules": ["fedra"]}))
    folder.record("a", Grid.from_dict({"rules": ["krum", "rfa"]}))
    frame = read_results(tmp_path)
    assert list(zip(frame["grid"], frame["rule"], strict=True)) == [("a", "krum"), ("a", "rfa"), ("b", "fedra")]


def test_another_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not a grid's folder"):
        read_results(tmp_path)
