from __future__ import annotations

import dataclasses
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.simulation.outcomes import outcome

from fedra.cohort import Verdict
from fedra.simulation import RoundOutcome
from fedra.simulation.parquet import as_frame
from fedra.simulation.run_records import (
    RECORD_TYPES,
    client_frame,
    read_record,
    read_records,
    round_frame,
    round_record,
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


def test_a_round_counts_who_was_caught_missed_and_wrongly_rejected() -> None:
    frame = round_frame([outcome(0, [False, True, True, False], accuracy=50.0), outcome(1, [True] * 4)])
    assert frame[["num_sampled", "num_malicious", "num_kept"]].to_numpy().tolist() == [[4, 2, 2], [4, 2, 4]]
    assert frame[["caught", "missed", "wrongly_rejected"]].to_numpy().tolist() == [[1, 1, 1], [0, 2, 0]]
    assert frame["estimated_malicious"].tolist() == [1, 1]
    assert frame["accuracy"].iloc[0] == 50.0
    assert np.isnan(frame["accuracy"].iloc[1])


def test_parts_of_a_record_join_without_changing_type() -> None:
    whole = [outcome(number, [True] * 4, num_malicious=None if number else 2) for number in range(3)]
    for make in (round_frame, client_frame):
        joined = pd.concat([make([one]) for one in whole], ignore_index=True)
        pd.testing.assert_frame_equal(joined, make(whole))
        assert (make([]).dtypes == make(whole).dtypes).all()


OUTCOMES = [outcome(number, [False, True, True, number == 1], accuracy=50.0 + number) for number in range(4)]


def written(run: Path, **parts: list[RoundOutcome]) -> Path:
    """Write both records of a run, whole or in parts; `until_N` holds the outcomes before round N."""
    (run / "parts").mkdir(parents=True)
    for name, outcomes in parts.items():
        for record, make in (("rounds", round_frame), ("clients", client_frame)):
            number = name.removeprefix("until_")
            place = run / f"{record}.parquet" if name == "whole" else run / f"parts/{record}-{int(number):08d}.parquet"
            make(outcomes).to_parquet(place)
    return run


def with_former_names(file: Path) -> None:
    """Write the record of rounds as earlier versions did."""
    pd.read_parquet(file).rename(columns={"wrongly_rejected": "wronged"}).drop(columns="warnings").to_parquet(file)


@pytest.mark.parametrize("former", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_records_are_read_back_whichever_version_wrote_them(tmp_path: Path, whole: bool, former: bool) -> None:
    parts = {"whole": OUTCOMES} if whole else {"until_2": OUTCOMES[:2], "until_4": OUTCOMES[2:]}
    run = written(tmp_path / "run", **parts)
    if former:
        with_former_names(run / ("rounds.parquet" if whole else "parts/rounds-00000002.parquet"))
    tables = read_records(run, rounds=4, whole=whole)
    for name, make in (("rounds", round_frame), ("clients", client_frame)):
        pd.testing.assert_frame_equal(as_frame(tables[name], RECORD_TYPES[name]), make(OUTCOMES))


def test_the_name_of_today_counts_where_a_file_has_both(tmp_path: Path) -> None:
    run = written(tmp_path / "run", whole=OUTCOMES)
    file = run / "rounds.parquet"
    pd.read_parquet(file).assign(wronged=99).to_parquet(file)
    table = read_record(run, "rounds", rounds=4, whole=True, columns=["wrongly_rejected"])
    assert table["wrongly_rejected"].to_pylist() == [one.wrongly_rejected for one in OUTCOMES]
    assert "wronged" not in table.column_names


def test_a_former_name_does_not_save_senseless_figures(tmp_path: Path) -> None:
    run = written(tmp_path / "run", whole=OUTCOMES)
    file = run / "rounds.parquet"
    pd.read_parquet(file).rename(columns={"wrongly_rejected": "wronged"}).assign(wronged=99).to_parquet(file)
    with pytest.raises(ValueError, match="has wrongly_rejected from 99 to 99; put the right file back"):
        read_records(run, rounds=4, whole=True)


def test_what_does_not_fit_together_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    run = written(tmp_path / "run", until_2=OUTCOMES[:2], until_4=OUTCOMES[1:3])
    with pytest.raises(ValueError, match=r"rounds-00000004\.parquet does not have the rounds of rounds 3 to 4"):
        read_records(run, rounds=4, whole=False)
    (run / "parts/rounds-00000004.parquet").unlink()
    with pytest.raises(ValueError, match="has no rounds after round 2, and 4 rounds are done"):
        read_records(run, rounds=4, whole=False)
    assert [len(table) for table in read_records(run, rounds=2, whole=False).values()] == [2, 8]


def test_a_run_without_records_has_empty_ones(tmp_path: Path) -> None:
    tables = read_records(tmp_path, rounds=None, whole=False)
    for name, make in (("rounds", round_frame), ("clients", client_frame)):
        pd.testing.assert_frame_equal(as_frame(tables[name], RECORD_TYPES[name]), make([]))


def test_observers_get_a_rounds_figures_and_its_clients() -> None:
    record = round_record(outcome(3, [False, True, True, False], accuracy=50.0), run="r", time=12.5)
    assert (record.run, record.round, record.phase, record.time) == ("r", 4, "train", 12.5)
    assert (record.rule, record.num_malicious, record.note) == ("fedavg", 1, "")
    assert record.metrics == {"accuracy": 50.0, "caught": 1.0, "missed": 1.0, "wrongly_rejected": 1.0}
    assert (record.kept, record.rejected, len(record.clients)) == (2, 2, 4)
    assert record.clients[0] == {
        "client": 5,
        "claimed_quantity": 50.0,
        "implied_quantity": None,
        "score": 4.0,
        "cut": None,
        "kept": False,
        "weight": 0.0,
        "reason": "left out",
        "usable": True,
        "malicious": True,
        "true_quantity": 1,
    }
    assert [client["client"] for client in record.clients[1:]] == [7, 8, 9]
    assert "accuracy" not in round_record(outcome(0, [True] * 4), run="r", time=0.0).metrics


def test_clients_records_are_made_when_somebody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    honest = Verdict.to_records
    monkeypatch.setattr(Verdict, "to_records", lambda verdict: made.append(verdict) or honest(verdict))
    record = round_record(outcome(0, [True] * 4), run="r", time=0.0)
    assert len(record.clients) == 4
    assert record.metrics["missed"] == 2
    assert made == []
    assert record.kept == 4
    assert record.figures()["kept"] == 4.0
    assert len(made) == 1
    assert made[0].update is None
    assert list(pickle.loads(pickle.dumps(record)).clients) == list(record.clients)


def test_a_record_of_before_there_was_attack_success_is_read(tmp_path: Path) -> None:
    frame = round_frame([outcome(0, [True] * 4, accuracy=50.0)])
    frame.drop(columns="attack_success").to_parquet(tmp_path / "rounds.parquet", write_page_checksum=True)
    table = read_record(tmp_path, "rounds", rounds=1, whole=True)
    assert table.column_names == list(frame.columns)
    assert np.isnan(table["attack_success"].to_numpy()).all()
    frame.assign(attack_success=101.0).to_parquet(tmp_path / "rounds.parquet", write_page_checksum=True)
    with pytest.raises(ValueError, match=r"has the attack_success 101\.0"):
        read_record(tmp_path, "rounds", rounds=1, whole=True)


def test_a_record_of_before_there_were_other_measures_is_read(tmp_path: Path) -> None:
    measured = dataclasses.replace(outcome(0, [True] * 4, accuracy=50.0), auc=0.7, class_accuracy=(40.0, 60.0))
    frame = round_frame([measured])
    # What was there before stands where it stood.
    assert list(frame.columns)[-2:] == ["class_accuracy", "auc"]
    frame.drop(columns=["class_accuracy", "auc"]).to_parquet(tmp_path / "rounds.parquet", write_page_checksum=True)
    table = read_record(tmp_path, "rounds", rounds=1, whole=True)
    assert table.column_names == list(frame.columns)
    assert table["class_accuracy"].to_pylist() == [""]
    assert np.isnan(table["auc"].to_numpy()).all()
    for wrong in ({"auc": 1.5}, {"class_accuracy": "40,x"}):
        frame.assign(**wrong).to_parquet(tmp_path / "rounds.parquet", write_page_checksum=True)
        with pytest.raises(ValueError, match=f"has the {next(iter(wrong))}"):
            read_record(tmp_path, "rounds", rounds=1, whole=True)


def test_other_measures_are_metrics_where_they_were_taken() -> None:
    measured = dataclasses.replace(outcome(0, [True] * 4, accuracy=50.0), auc=0.7, class_accuracy=(40.0, 60.0))
    metrics = round_record(measured, run="r", time=0.0).metrics
    assert (metrics["auc"], metrics["worst_class_accuracy"]) == (0.7, 40.0)
    assert not {"auc", "worst_class_accuracy"} & set(round_record(outcome(0, [True] * 4), run="r", time=0.0).metrics)


def test_the_success_of_an_attack_is_a_metric_where_it_was_measured() -> None:
    measured = dataclasses.replace(outcome(0, [True] * 4, accuracy=50.0), attack_success=12.5)
    assert round_record(measured, run="r", time=0.0).metrics["attack_success"] == 12.5
    assert "attack_success" not in round_record(outcome(0, [True] * 4), run="r", time=0.0).metrics
