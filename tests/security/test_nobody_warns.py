"""Something passes the rule that a person should look at."""

import json
import logging

import numpy as np
import pandas as pd
import pytest
from flwr.serverapp.strategy import FedAvg
from hypothesis import given
from hypothesis import strategies as st
from tests.flower.federation import MemoryGrid, arrays_of, federation, honest, model, one_round, record, reply_to

import fedra
from fedra import WarningLimits
from fedra.alarms import Streaks, round_warnings
from fedra.audit.command import audit
from fedra.cohort import display_id
from fedra.flower import Guard, RobustStrategy
from fedra.simulation import SimulationConfig, resume, simulate


def round_of(claims, *, seed=0, true=None):
    rng = np.random.default_rng(seed)
    claims = np.asarray(claims, dtype=float)
    real = claims if true is None else np.asarray(true, dtype=float)
    return 0.3 + rng.standard_normal((len(claims), 300)) / np.sqrt(real)[:, np.newaxis], claims


def test_one_client_that_is_most_of_the_result_is_named():
    updates, claims = round_of([10] * 9 + [1000])
    verdict = fedra.FedAvg()(updates, claims, [f"node {i}" for i in range(10)])
    (warning,) = verdict.warnings
    assert "client node 9 alone is 92% of this round's result" in warning
    assert f"warning: {warning}" in str(verdict)


def test_a_round_of_one_client_is_no_reason_to_warn():
    assert fedra.FedAvg()(np.ones((1, 4)), [5]).warnings == ()


def test_a_kept_claim_far_above_what_its_update_speaks_for_is_named():
    true = [30.0] * 12
    updates, claims = round_of([30.0] * 11 + [900.0], true=true)
    verdict = fedra.FedRA()(updates, claims)
    assert verdict.kept[11]
    assert any(
        "more than 20 times as much data" in warning and "11 claims 900" in warning for warning in verdict.warnings
    )


def test_the_capture_that_nobody_noticed_is_told():
    """A billion claimed against some dozens implied, kept by the rule as it is printed, behind a decoy."""
    updates, claims = round_of([20.0] * 12)
    updates[10], updates[11] = -1e9 * 0.3, -10 * 0.3
    claims[10:] = 1e9
    verdict = fedra.FedRA.as_printed()(updates, claims)
    assert verdict.kept[11]
    assert any("client 11 alone is 100%" in warning for warning in verdict.warnings)
    assert any("11 claims 1,000,000,000 and behaves like" in warning for warning in verdict.warnings)


def test_a_quiet_round_says_nothing():
    updates, claims = round_of([10, 20, 30, 15, 25, 12, 18, 40, 22, 17])
    assert fedra.FedRA()(updates, claims).warnings == ()


def captured(message):
    arrays = {name: array + np.float32(0.01) for name, array in arrays_of(message.content["arrays"]).items()}
    return reply_to(message, arrays, {"loss": 0.5, "num-examples": 10**6})


@pytest.mark.parametrize("strategy", [Guard, RobustStrategy])
def test_warnings_reach_log_record_and_trail(strategy, tmp_path, caplog):
    told = {"rule": fedra.FedRA(malicious_ratio=0), "audit": tmp_path / "audit.jsonl"}
    reports = []
    made = (
        Guard(FedAvg(), on_round=reports.append, **told)
        if strategy is Guard
        else RobustStrategy(on_round=reports.append, **told)
    )
    with caplog.at_level(logging.WARNING):
        one_round(made, federation(8, node_3=captured), record(model()))
    (report,) = reports
    assert any("client 3 alone is 100% of this round's result" in warning for warning in report.warnings)
    assert any("client 3 alone is 100%" in text for text in caplog.messages)
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert lines[-1]["kind"] == "round"
    assert lines[-1]["warnings"] == list(report.warnings)


def test_a_node_left_out_again_and_again_is_named(tmp_path, caplog):
    def stranger(message):
        arrays = {name: array + np.float32(7) for name, array in arrays_of(message.content["arrays"]).items()}
        return reply_to(message, arrays, {"loss": 0.5, "num-examples": 20})

    grid = MemoryGrid({node: honest(node) for node in range(1, 9)} | {9: stranger})
    reports = []
    strategy = Guard(FedAvg(), on_round=reports.append, warn_at=WarningLimits(streak=3))
    arrays = record(model())
    for number in range(1, 8):
        arrays, _ = one_round(strategy, grid, arrays, number)
    found = {report.round: [w for w in report.warnings if "left out in every one" in w] for report in reports}
    assert {number for number, warnings in found.items() if warnings} == {3, 6}
    assert "9 (3)" in found[3][0]
    assert "9 (6)" in found[6][0]


def test_a_client_that_is_kept_once_begins_anew():
    streaks = Streaks(WarningLimits(streak=2))
    assert streaks.update([1, 2], [2]) == ()
    assert streaks.update([1, 2], [1, 2]) == ()
    assert streaks.update([1, 2], [2]) == ()
    assert len(streaks.update([1, 2], [2])) == 1


def test_names_that_change_in_each_round_do_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr("fedra.alarms._MOST_REMEMBERED", 50)
    streaks = Streaks()
    for number in range(100):
        streaks.update([f"{number}-{i}" for i in range(10)], [])
    assert len(streaks._running) <= 50


@given(st.text() | st.binary() | st.integers() | st.none())
def test_identifiers_are_safe_to_print(client):
    text = display_id(client)
    assert text.isprintable() or text == ""
    assert len(text) <= 60


@given(st.data())
def test_warnings_never_raise_and_stay_short(data):
    count = data.draw(st.integers(1, 30))
    numbers = st.floats(allow_nan=True, allow_infinity=True)
    values = [np.array(data.draw(st.lists(numbers, min_size=count, max_size=count))) for _ in range(3)]
    kept = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)))
    warnings = round_warnings(
        client_ids=tuple(range(count)), kept=kept, quantities=values[0], weights=values[1], implied=values[2]
    )
    assert all(len(warning) < 1000 for warning in warnings)


def test_limits_are_limits():
    with pytest.raises(TypeError, match=r"warn_at=5; give fedra\.WarningLimits"):
        Guard(FedAvg(), warn_at=5)


def test_warnings_show_in_the_trails_summary_and_page(tmp_path):
    trail = tmp_path / "audit.jsonl"
    strategy = Guard(FedAvg(), rule=fedra.FedRA(malicious_ratio=0), audit=trail)
    one_round(strategy, federation(8, node_3=captured), record(model()))
    page = tmp_path / "page.html"
    text = audit(trail, html=page)
    assert "round 1: client 3 alone is 100% of this round" in text
    assert "round 1: client 3 alone is 100% of this round" in page.read_text()


def test_warnings_are_in_the_records_of_a_run(tmp_path):
    config = SimulationConfig(rounds=3, rule="fedavg", setting="fixed", claimed_quantity=10**9, num_sampled=10)
    result = simulate(config, out=tmp_path / "run")
    assert (result.rounds["num_malicious"] > 0).any()
    warned = result.rounds[result.rounds["warnings"] != ""]
    assert len(warned) > 0
    assert warned["warnings"].str.contains("of this round's result").all()
    assert resume(tmp_path / "run").rounds["warnings"].tolist() == result.rounds["warnings"].tolist()


def test_records_of_earlier_versions_have_no_warnings(tmp_path):
    simulate(SimulationConfig(rounds=2, num_sampled=10), out=tmp_path / "run")
    file = tmp_path / "run" / "rounds.parquet"
    pd.read_parquet(file).drop(columns="warnings").to_parquet(file)
    assert resume(tmp_path / "run").rounds["warnings"].tolist() == ["", ""]
