from __future__ import annotations

import pytest
from tests.audit.records import round_record

from fedra.audit import AuditLog, following, read_trail, reading
from fedra.audit.following import Follower
from fedra.audit.terminal import follow


def test_each_look_has_what_is_new(tmp_path):
    log = AuditLog(tmp_path / "a.jsonl")
    follower = Follower(log.path)
    assert follower.read() == ([], [])
    log.round(round_record(1))
    rounds, clients = follower.read()
    assert ([line["round"] for line in rounds], len(clients)) == ([1], 3)
    assert follower.read() == ([], [])
    log.round(round_record(2))
    assert [line["round"] for line in follower.read()[0]] == [2]
    assert follower.trail == read_trail(log.path)


def test_rotation_is_followed(tmp_path):
    log = AuditLog(tmp_path / "a.jsonl", max_bytes=2000)
    follower, seen = Follower(log.path), []
    for number in range(1, 31):
        log.round(round_record(number))
        if number % 4 == 0:
            seen += [line["round"] for line in follower.read()[0]]
    seen += [line["round"] for line in follower.read()[0]]
    assert seen == list(range(1, 31))


def test_a_line_is_read_when_it_is_whole(tmp_path):
    log = AuditLog(tmp_path / "a.jsonl")
    log.round(round_record(1))
    content = log.path.read_bytes()
    follower = Follower(log.path)
    log.path.write_bytes(content[:-40])
    assert follower.read()[0] == []
    with log.path.open("ab") as file:
        file.write(content[-40:])
    assert [line["round"] for line in follower.read()[0]] == [1]
    assert follower.trail.unreadable == 0


def test_a_file_that_became_shorter_is_read_anew(tmp_path):
    log = AuditLog(tmp_path / "a.jsonl")
    for number in (1, 2):
        log.round(round_record(number))
    follower = Follower(log.path)
    follower.read()
    one = log.path.read_bytes()[: log.path.stat().st_size // 2]
    log.path.write_bytes(one)
    assert [line["round"] for line in follower.read()[0]] == [1]


def test_of_a_long_trail_the_latest_part_is_read(tmp_path, monkeypatch):
    log = AuditLog(tmp_path / "a.jsonl")
    for number in range(1, 11):
        log.round(round_record(number))
    for module in (following, reading):
        monkeypatch.setattr(module, "MOST_BYTES", log.path.stat().st_size // 2)
    follower = Follower(log.path)
    follower.read()
    assert follower.trail.rounds == read_trail(log.path).rounds
    assert follower.trail.skipped_bytes >= read_trail(log.path).skipped_bytes > 0
    assert follower.trail.gaps == ()


def test_lines_without_end_are_counted_and_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(following, "_MOST_AT_ONCE", 4096)
    monkeypatch.setattr(following, "LONGEST_LINE", 2000)
    log = AuditLog(tmp_path / "a.jsonl")
    log.round(round_record(1))
    with log.path.open("ab") as file:
        file.write(b"x" * 20_000 + b"\n")
    log.round(round_record(2))
    follower = Follower(log.path)
    assert [line["round"] for line in follower.read()[0]] == [1, 2]
    assert follower.trail.unreadable >= 1


def test_what_is_no_trail_is_told_at_the_first_look(tmp_path):
    (tmp_path / "a.txt").write_text("hello\n")
    with pytest.raises(ValueError, match="is not an audit trail"):
        Follower(tmp_path / "a.txt").read()


def test_the_latest_rounds_and_then_each_that_comes(tmp_path, monkeypatch):
    log = AuditLog(tmp_path / "a.jsonl")
    for number in range(1, 15):
        log.round(round_record(number))
    coming = iter(
        [
            round_record(15),
            round_record(18, warnings=("client 2 is most of the result",)),
            round_record(19, note="too few replies\x1b[2J"),
        ]
    )
    monkeypatch.setattr("fedra.audit.terminal.time.sleep", lambda seconds: log.round(next(coming)))
    lines = list(follow(Follower(log.path), rounds=3))
    assert lines[0] == "round 5, kept 2, left out 1, assumed malicious 1"
    assert lines[1] == "    3: score 3 is past the cut 2"
    assert lines[20:] == [
        "round 15, kept 2, left out 1, assumed malicious 1",
        "    3: score 3 is past the cut 2",
        "rounds 16 to 17 of run 7: no line (a server stopped before it wrote?)",
        "round 18, kept 2, left out 1, assumed malicious 1",
        "    3: score 3 is past the cut 2",
        "  ! client 2 is most of the result",
        "round 19, skipped: too few replies [2J",
    ]


def test_many_who_were_left_out_are_counted(tmp_path):
    log = AuditLog(tmp_path / "a.jsonl")
    record = round_record(1, clients=20)
    for client in record.clients:
        client.update(kept=False, reason="far")
    log.round(record)
    lines = list(follow(Follower(log.path), rounds=0))
    assert len(lines) == 1 + 5 + 1
    assert lines[-1] == "    and 15 more"
