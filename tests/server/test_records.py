"""What a round's record says of itself."""

import dataclasses

import pytest

from fedra.server import RoundRecord

CLIENTS = [
    {"client": "1", "kept": True, "weight": 0.75, "reason": ""},
    {"client": "2", "kept": False, "weight": 0.0, "reason": "far away"},
    {"client": "3", "kept": True, "weight": 0.25, "reason": ""},
]


def record(**changed):
    known = {"run": "r", "round": 3, "phase": "train", "time": 5.0, "rule": "fedra", "num_malicious": 1, "note": ""}
    return RoundRecord(**{**known, "clients": CLIENTS, **changed})


def test_a_record_counts_who_is_part_of_the_round():
    assert (record().kept, record().rejected, record().skipped) == (2, 1, False)
    assert record(note="too few").skipped


def test_figures_are_the_rounds_numbers_and_its_metrics():
    assert record(metrics={"accuracy": 0.5}, warnings=["look", "there"]).figures() == {
        "kept": 2.0,
        "rejected": 1.0,
        "skipped": 0.0,
        "estimated_malicious": 1.0,
        "warnings": 2.0,
        "accuracy": 0.5,
    }


def test_a_rule_that_estimates_nothing_has_no_such_figure():
    assert "estimated_malicious" not in record(num_malicious=None).figures()
    assert record(num_malicious=0).figures()["estimated_malicious"] == 0.0


def test_a_metric_of_the_name_of_a_figure_does_not_hide_it():
    figures = record(metrics={"kept": 99.0, "skipped": 1.0, "accuracy": 0.5}).figures()
    assert (figures["kept"], figures["skipped"], figures["accuracy"]) == (2.0, 0.0, 0.5)


def test_a_round_that_failed_after_all_has_nobody_in_it():
    before = record()
    after = before.failed("the server step overflowed")
    assert (after.kept, after.rejected, after.note) == (0, 3, "the server step overflowed")
    assert [client["weight"] for client in after.clients] == [0.0, 0.0, 0.0]
    assert [client["reason"] for client in after.clients] == ["", "far away", ""]
    assert before.kept == 2
    assert dataclasses.replace(after, note="", clients=CLIENTS) == before


def test_a_record_is_not_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        record().round = 4


def test_a_round_without_clients_is_empty():
    empty = record(clients=[])
    assert (empty.kept, empty.rejected) == (0, 0)
    assert empty.figures()["kept"] == 0.0
