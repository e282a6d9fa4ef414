from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fedra import FedAvg
from fedra.simulation import RoundOutcome
from fedra.simulation.records import client_frame, round_frame, summary

MALICIOUS = np.array([True, True, False, False])


def outcome(number: int, kept: list[bool], *, accuracy: float | None = None, **given: Any) -> RoundOutcome:
    """A round whose verdict is a rule's, but for what is decided here."""
    quantities = np.array([50.0, 50.0, 2.0, 3.0])
    decided: dict[str, Any] = {
        "kept": np.array(kept),
        "weights": np.array(kept) / max(sum(kept), 1),
        "scores": np.array([4.0, 3.0, 2.0, np.nan]),
        "num_malicious": 1,
        "reasons": tuple("" if stays else "left out" for stays in kept),
    }
    verdict = FedAvg()(np.ones((4, 2)), quantities, [5, 7, 8, 9])
    return RoundOutcome(
        round=number,
        clients=np.array([5, 7, 8, 9]),
        malicious=MALICIOUS,
        true_quantities=np.array([1, 4, 2, 3]),
        claims=quantities,
        verdict=dataclasses.replace(verdict, **{**decided, **given}),
        accuracy=accuracy,
    )


def test_the_audit_has_a_line_for_each_client_of_each_round() -> None:
    frame = client_frame([outcome(0, [False, True, True, False]), outcome(1, [False, False, True, True])])
    assert list(frame.columns) == [
        "round",
        "client",
        "malicious",
        "true_quantity",
        "claimed_quantity",
        "implied_quantity",
        "score",
        "kept",
        "weight",
        "reason",
    ]
    assert frame["round"].tolist() == [0] * 4 + [1] * 4
    first = frame.iloc[0]
    assert (first["client"], first["malicious"], first["true_quantity"], first["claimed_quantity"]) == (5, True, 1, 50)
    assert (first["score"], first["kept"], first["weight"], first["reason"]) == (4.0, False, 0.0, "left out")
    assert frame["implied_quantity"].isna().all()
    assert np.isnan(frame["score"].iloc[3])
    assert list(frame.index) == list(range(8))


def test_rules_without_weights_or_scores_leave_them_empty() -> None:
    frame = client_frame([outcome(0, [True] * 4, weights=None, scores=None)])
    assert frame[["weight", "score"]].isna().all(axis=None)


def test_a_round_counts_who_was_caught_missed_and_wronged() -> None:
    frame = round_frame([outcome(0, [False, True, True, False], accuracy=50.0), outcome(1, [True] * 4)])
    assert frame[["num_sampled", "num_malicious", "num_kept"]].to_numpy().tolist() == [[4, 2, 2], [4, 2, 4]]
    assert frame[["caught", "missed", "wronged"]].to_numpy().tolist() == [[1, 1, 1], [0, 2, 0]]
    assert frame["estimated_malicious"].tolist() == [1, 1]
    assert frame["accuracy"].iloc[0] == 50.0
    assert np.isnan(frame["accuracy"].iloc[1])


def test_the_summary_of_a_run() -> None:
    frame = round_frame(
        [
            outcome(0, [False, True, True, False], accuracy=70.0, num_malicious=4),
            outcome(1, [False, False, True, True], num_malicious=None),
            outcome(2, [True, False, True, True], accuracy=60.0, note="nothing came of it"),
        ]
    )
    assert summary(frame) == {
        "final_accuracy": 60.0,
        "best_accuracy": 70.0,
        "best_round": 0,
        "filtering_precision": pytest.approx(4 / 5),
        "filtering_recall": pytest.approx(4 / 6),
        "mean_abs_error_malicious": pytest.approx(1.5),
        "rounds_without_update": 1,
    }


def test_what_cannot_be_said_is_none() -> None:
    frame = round_frame([outcome(0, [True] * 4, num_malicious=None)])
    found = summary(frame.assign(num_malicious=0))
    for key in (
        "final_accuracy",
        "best_accuracy",
        "filtering_precision",
        "filtering_recall",
        "mean_abs_error_malicious",
    ):
        assert found[key] is None, key


def test_parts_of_a_record_join_without_changing_type() -> None:
    whole = [outcome(number, [True] * 4, num_malicious=None if number else 2) for number in range(3)]
    for make in (round_frame, client_frame):
        joined = pd.concat([make([one]) for one in whole], ignore_index=True)
        pd.testing.assert_frame_equal(joined, make(whole))
        assert (make([]).dtypes == make(whole).dtypes).all()
