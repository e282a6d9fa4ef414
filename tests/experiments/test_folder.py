from __future__ import annotations

from pathlib import Path

import pytest

from fedra.experiments import Grid, GridFolder, read_results
from fedra.experiments.files import packed, unpack
from fedra.files import write_whole

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


def test_another_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not a grid's folder"):
        read_results(tmp_path)


def test_a_folder_survives_packing(tmp_path: Path) -> None:
    (tmp_path / "from" / "parts").mkdir(parents=True)
    (tmp_path / "from" / "config.toml").write_bytes(b"a")
    (tmp_path / "from" / "parts" / "one").write_bytes(b"b" * 5000)
    (tmp_path / "from" / ".lock").write_bytes(b"")
    (tmp_path / "to").mkdir()
    (tmp_path / "to" / "old").write_bytes(b"c")
    unpack(packed(tmp_path / "from"), tmp_path / "to")
    found = {str(file.relative_to(tmp_path / "to")): file.read_bytes() for file in (tmp_path / "to").rglob("*.*")}
    assert found == {"config.toml": b"a"}
    assert (tmp_path / "to" / "parts" / "one").read_bytes() == b"b" * 5000
    assert sorted(path.name for path in tmp_path.iterdir()) == ["from", "to"]
    unpack(packed(tmp_path / "nowhere"), tmp_path / "empty")
    assert list((tmp_path / "empty").iterdir()) == []


def test_a_file_that_is_not_written_to_the_end_leaves_the_old_one(tmp_path: Path) -> None:
    file = tmp_path / "results.csv"
    file.write_text("old", encoding="utf-8")

    def half(path: Path) -> None:
        path.write_text("ne", encoding="utf-8")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_whole(file, half)
    assert file.read_text(encoding="utf-8") == "old"
