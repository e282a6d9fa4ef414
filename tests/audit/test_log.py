from __future__ import annotations

import dataclasses
import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.audit.records import round_record

from fedra.audit import AuditLog, read_trail, with_audit
from fedra.audit.log import record_lines, rotated
from fedra.server import Observer


def test_one_synced_write_a_round(tmp_path, monkeypatch):
    synced = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (synced.append(handle), real(handle)))
    log = AuditLog(tmp_path / "a.jsonl")
    log.round(round_record(1))
    log.round(round_record(2))
    assert len(synced) == 2


def test_rotation_loses_nothing(tmp_path):
    path = tmp_path / "a.jsonl"
    log = AuditLog(path, max_bytes=2000)
    for number in range(1, 61):
        log.round(round_record(number))
    files = sorted(file.name for file in tmp_path.iterdir())
    assert len(files) > 12
    assert "a.jsonl.12" in files
    assert all(file.stat().st_size < 2000 + 1500 for file in tmp_path.iterdir())
    assert [r["round"] for r in read_trail(path).rounds] == list(range(1, 61))
    with pytest.raises(ValueError, match="max_bytes"):
        AuditLog(path, max_bytes=0)


def test_rotated_files_come_in_the_order_of_their_numbers(tmp_path):
    for name in ("a.jsonl.2", "a.jsonl.10", "a.jsonl", "a.jsonl.x", "b.jsonl.1", "aXjsonl.3"):
        (tmp_path / name).touch()
    assert [number for number, _ in rotated(tmp_path / "a.jsonl")] == [2, 10]


def test_appending_never_changes_what_was_written(tmp_path):
    path = tmp_path / "a.jsonl"
    AuditLog(path).round(round_record(1))
    before = path.read_bytes()
    AuditLog(path).round(round_record(2))
    assert path.read_bytes().startswith(before)


def test_what_follows_a_torn_line_is_not_glued_to_it(tmp_path):
    path = tmp_path / "a.jsonl"
    AuditLog(path).round(round_record(1))
    with path.open("ab") as file:
        file.write(b'{"kind": "client", "run": "7", "rou')
    AuditLog(path).round(round_record(2))
    trail = read_trail(path)
    assert trail.unreadable == 1
    assert [r["round"] for r in trail.rounds] == [1, 2]
    assert len(trail.clients) == 6


def test_the_lines_of_a_round():
    *clients, end = map(json.loads, record_lines(round_record(4, warnings=("look",), metrics={"loss": 0.5}), lost=3))
    assert [line["client"] for line in clients] == [1, 2, 3]
    assert all(
        (line["kind"], line["run"], line["round"], line["phase"]) == ("client", "7", 4, "train") for line in clients
    )
    assert (end["kind"], end["kept"], end["rejected"], end["num_malicious"]) == ("round", 2, 1, 1)
    assert (end["warnings"], end["metrics"], end["lines_lost"]) == (["look"], {"loss": 0.5}, 3)


def test_what_a_round_does_not_have_is_not_on_its_line():
    end = json.loads(record_lines(round_record())[-1])
    assert not {"warnings", "metrics", "lines_lost"} & end.keys()


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_text_of_a_client_is_one_line(name, reason):
    record = round_record(reason=reason)
    record = dataclasses.replace(record, clients=[{**client, "client": name} for client in record.clients])
    lines = record_lines(record)
    assert all("\n" not in line and line.isascii() for line in lines)
    assert [json.loads(line)["client"] for line in lines[:-1]] == [name] * 3


def test_the_trail_comes_before_other_observers(tmp_path):
    other = Observer()
    assert with_audit(None, iter([other])) == (other,)
    log = AuditLog(tmp_path / "given.jsonl")
    assert with_audit(log, [other]) == (log, other)
    made, last = with_audit(tmp_path / "made.jsonl", [other])
    assert isinstance(made, AuditLog)
    assert (made.path, last) == (tmp_path / "made.jsonl", other)


def test_a_place_that_cannot_be_written_to_is_refused_at_once(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        AuditLog(tmp_path / "file" / "a.jsonl")


@pytest.mark.parametrize("audit", [5, True, b"x", [], AuditLog, "", "a\0b"], ids=repr)
def test_what_is_no_trail_is_named(audit):
    with pytest.raises((TypeError, ValueError), match=r"^audit=.*; give the path of a file"):
        with_audit(audit, ())
