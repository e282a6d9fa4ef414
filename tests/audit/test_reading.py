from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.audit.records import round_record

from fedra.audit import AuditLog, read_trail
from fedra.audit import reading as module
from fedra.audit.log import record_lines
from fedra.audit.reading import check_trail


def test_a_missing_file_is_an_error_that_says_what_to_do(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no audit trail at .*; give the file that `audit=`"):
        read_trail(tmp_path / "none.jsonl")


def test_rotated_files_are_read_first_also_without_a_current_one(tmp_path):
    path = tmp_path / "a.jsonl"
    log = AuditLog(path, max_bytes=1)
    for number in (1, 2, 3):
        log.round(round_record(number))
    path.unlink()
    assert [r["round"] for r in read_trail(path).rounds] == [1, 2]


def test_what_a_summary_does_not_look_at_is_left_out(tmp_path):
    path = tmp_path / "a.jsonl"
    AuditLog(path).round(round_record(metrics={"loss": 0.5}))
    (found,) = read_trail(path).rounds
    assert "metrics" not in found
    assert found["rule"] == "fedra"


def test_lines_that_the_disk_did_not_take_are_added_up(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join([*record_lines(round_record(1), lost=4), *record_lines(round_record(2), lost=3)]))
    assert read_trail(path).lost == 7


def test_of_a_long_trail_the_latest_part_is_read(tmp_path, monkeypatch):
    path = tmp_path / "a.jsonl"
    log = AuditLog(path)
    for number in range(1, 11):
        log.round(round_record(number))
    monkeypatch.setattr(module, "MOST_BYTES", path.stat().st_size // 2)
    trail = read_trail(path)
    numbers = [r["round"] for r in trail.rounds]
    assert trail.skipped_bytes == path.stat().st_size - path.stat().st_size // 2
    assert numbers == list(range(11 - len(numbers), 11))
    assert 4 <= len(numbers) <= 5
    assert trail.unreadable == 0


LINE = json.loads(record_lines(round_record())[0])
values = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.lists(st.integers()))


@given(st.sampled_from(sorted(LINE)), values)
def test_a_line_is_read_whole_or_counted(tmp_path_factory, key, value):
    path = tmp_path_factory.mktemp("trail") / "a.jsonl"
    path.write_text(json.dumps({**LINE, key: value}) + "\n")
    trail = read_trail(path)
    assert len(trail.clients) + len(trail.rounds) + trail.unreadable == 1
    for line in trail.clients:
        assert isinstance(line["kept"], bool)
        assert isinstance(line["reason"], str)


@given(st.binary(max_size=200))
def test_any_bytes_are_read(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("trail") / "a.jsonl"
    path.write_bytes(data)
    trail = read_trail(path)
    assert trail.clients == trail.rounds == ()
    assert trail.unreadable <= data.count(b"\n") + 1


def test_a_folder_is_told_with_what_to_give_instead(tmp_path):
    with pytest.raises(ValueError, match=r"is a folder, not an audit trail; give the file that `audit=`"):
        read_trail(tmp_path)
    AuditLog(tmp_path / "audit.jsonl").round(round_record())
    with pytest.raises(ValueError, match=r"give a file, such as .*audit\.jsonl$"):
        read_trail(tmp_path)
    (tmp_path / "config.toml").touch()
    with pytest.raises(ValueError, match=r"it holds simulated runs: fedra report "):
        read_trail(tmp_path)


def test_a_file_without_one_line_of_a_trail_is_no_trail(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("one\ntwo\n")
    with pytest.raises(ValueError, match=r"notes\.txt is not an audit trail: its 2 lines are not .*; give the file"):
        check_trail(path, read_trail(path))
    path.write_text("")
    check_trail(path, read_trail(path))
