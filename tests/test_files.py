"""Files written whole, moved whole, and locked; what an attacker plants is in tests/security."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedra.files import LOCK, folder_inside, inside, locked, move_whole, write_at, write_text, write_whole


def test_a_file_that_is_not_written_to_the_end_leaves_the_old_one(tmp_path: Path) -> None:
    file = tmp_path / "results.csv"
    file.write_text("old", encoding="utf-8")

    def half(path: Path) -> None:
        path.write_text("ne", encoding="utf-8")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_whole(file, half)
    assert file.read_text(encoding="utf-8") == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["results.csv"]


def test_a_text_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    file = tmp_path / "x"
    write_text(file, "older and longer")
    write_text(file, "né\n")
    assert file.read_bytes() == "né\n".encode()


def test_a_finished_file_is_moved_to_its_place(tmp_path: Path) -> None:
    (tmp_path / "x.part").write_bytes(b"new")
    (tmp_path / "x").write_bytes(b"old")
    move_whole(tmp_path / "x.part", tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == b"new"
    assert not (tmp_path / "x.part").exists()


def test_a_folder_in_the_way_stays_and_so_does_the_finished_file(tmp_path: Path) -> None:
    (tmp_path / "x.part").write_bytes(b"new")
    (tmp_path / "x").mkdir()
    with pytest.raises(OSError, match="is a directory, where a file belongs"):
        move_whole(tmp_path / "x.part", tmp_path / "x")
    assert (tmp_path / "x.part").read_bytes() == b"new"


def test_a_link_is_replaced_in_a_folder_of_ours_but_not_where_a_user_named_it(tmp_path: Path) -> None:
    other, link = tmp_path / "other", tmp_path / "link"
    other.write_text("precious", encoding="utf-8")
    link.symlink_to(other)
    with pytest.raises(OSError, match="is a link to"):
        write_at(link, b"new")
    write_text(link, "new")
    assert not link.is_symlink()
    assert (link.read_text(), other.read_text()) == ("new", "precious")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/etc"])
def test_names_that_lead_elsewhere_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="is not the name of one file or folder"):
        inside(tmp_path, name)


def test_folders_are_made_inside(tmp_path: Path) -> None:
    assert folder_inside(tmp_path, "a", "b").is_dir()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    with pytest.raises(OSError, match=r"is a link to .* put a folder in its place"):
        folder_inside(tmp_path, "link")


def test_one_holds_a_folder_at_a_time_and_leftovers_go(tmp_path: Path) -> None:
    (tmp_path / ".fedra-0123.new").write_text("half", encoding="utf-8")
    with locked(tmp_path, "in use"):
        assert sorted(path.name for path in tmp_path.iterdir()) == [LOCK]
        with pytest.raises(ValueError, match=r"^in use$"), locked(tmp_path, "in use"):
            pytest.fail("both hold it")
    with locked(tmp_path, "in use"):
        pass
