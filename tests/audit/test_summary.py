from __future__ import annotations

import dataclasses

from tests.audit.records import round_record

from fedra.audit import AuditLog, read_trail, summarise, summary_text
from fedra.audit.summary import reason_kind
from fedra.server.records import LEFT_OUT


def trail_of(tmp_path, *records):
    log = AuditLog(tmp_path / "a.jsonl")
    for record in records:
        log.round(record)
    return read_trail(log.path)


def test_who_was_dropped_how_often_and_why(tmp_path):
    trail = trail_of(
        tmp_path,
        round_record(1),
        round_record(2, reason="score 7.25e+03 is past the cut 1,200"),
        round_record(3, note="too few clients"),
    )
    first, *others = summarise(trail)
    assert (first.client, first.replies, first.dropped, first.median_claim) == ("3", 2, 2, 30.0)
    assert first.reasons == (("score 7.25e+03 is past the cut 1,200", 2),)
    assert first.why(1) == ["score 7.25e+03 is past the cut 1,200 (last of 2)"]
    assert all(other.dropped == 0 for other in others)
    text = summary_text(trail)
    assert "3 training rounds of 1 run, 1 skipped" in text
    assert "too few clients" in text


def test_evaluation_counts_only_for_faults_of_its_own(tmp_path):
    evaluations = [
        dataclasses.replace(round_record(number, reason=reason), phase="evaluate")
        for number, reason in enumerate((LEFT_OUT, "metric 'loss' is not finite"), start=1)
    ]
    first = summarise(trail_of(tmp_path, round_record(1), *evaluations))[0]
    assert (first.client, first.replies, first.dropped) == ("3", 1, 1)
    assert ("in evaluation: metric 'loss' is not finite", 1) in first.reasons
    assert not any(LEFT_OUT in text for text, _ in first.reasons)


def test_warnings_and_what_is_missing_are_in_the_text(tmp_path):
    log = AuditLog(tmp_path / "a.jsonl")
    log.round(round_record(1, warnings=("client 2 is most of the result",)))
    with log.path.open("ab") as file:
        file.write(b"torn\n")
    text = summary_text(read_trail(log.path))
    assert "1 warning, the last:\n  round 1: client 2 is most of the result" in text
    assert "1 line could not be read" in text


def test_reasons_differ_by_words_not_by_figures():
    assert reason_kind("score -7.25e+03 is past 1,200") == reason_kind("score 3 is past 2.5")
    assert reason_kind("score 3 is past 2") != reason_kind("claim 3 is past 2")
