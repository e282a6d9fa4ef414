"""One run's folder, read: done, unfinished, failed, damaged or hostile."""

import json
import shutil

import numpy as np
import pytest
from tests.simulation.watching import stop_in

from fedra.report.model.one_run import explanation, facts, is_run, read_run, rejection_text
from fedra.simulation import SimulationConfig, simulate

SETTINGS = {"rule": "krum", "attack": "lie", "alpha_q": 10.0, "rounds": 6, "eval_every": 2, "num_sampled": 16}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "one"
    simulate(SimulationConfig(**SETTINGS), out=path)
    return path


@pytest.fixture(scope="module")
def run(folder):
    return read_run(folder)


def copied(folder, tmp_path):
    return shutil.copytree(folder, tmp_path / "copy")


def test_what_it_was(run, folder):
    assert is_run(folder)
    assert not is_run(folder.parent)
    outcome = run.outcome
    assert (outcome.rule, outcome.attack, outcome.alpha_q, outcome.run) == ("krum", "lie", 10.0, "one")
    assert (outcome.status, outcome.error, outcome.own) == ("done", "", False)
    assert run.planned_rounds == len(run.rounds) == 6
    assert run.measured["round"].tolist() == [2, 4, 6]
    assert outcome.accuracy == run.measured["accuracy"].iloc[-1]


def test_whom_the_rule_rejected(run):
    clients = run.clients
    totals = run.totals
    assert totals["caught"] == int((clients["malicious"] & ~clients["kept"]).sum())
    assert totals["wrongly_rejected"] == int((~clients["malicious"] & ~clients["kept"]).sum())
    assert totals["malicious"] + totals["honest"] == len(clients)
    table = run.rejected_clients
    assert table["rejected"].sum() == int((~clients["kept"]).sum())
    assert table["rounds"].sum() == len(clients)
    assert table["rejected"].is_monotonic_decreasing
    first = clients[(clients["client"] == table["client"][0]) & ~clients["kept"]]
    assert (table["rejected"][0], table["reason"][0]) == (len(first), first["reason"].iloc[-1])
    assert f"wrongly {totals['wrongly_rejected']:,} of {totals['honest']:,}" in rejection_text(run)


def test_a_rule_that_rejects_nobody(tmp_path):
    simulate(SimulationConfig(**{**SETTINGS, "rule": "fedavg"}), out=tmp_path / "run")
    run = read_run(tmp_path / "run")
    assert rejection_text(run).startswith("The rule rejected nobody in 6 rounds")
    assert run.scores == {}
    assert "precision of rejections" not in dict(facts(run))


def test_scores_are_counted_by_group(run):
    assert {name: counts.sum() for name, counts in run.scores.items()} == {
        "honest": run.totals["honest"],
        "malicious": run.totals["malicious"],
    }


def test_many_rounds_become_few_points(run):
    many = np.arange(1_001)
    rounds = run.rounds.iloc[many % 6].assign(round=many, caught=many % 2)
    size, points = type(run)(outcome=run.outcome, rounds=rounds, clients=run.clients, result=run.result).per_round
    assert (size, len(points)) == (5, 201)
    assert points["round"].tolist()[:2] == [5, 10]
    assert points["round"].iloc[-1] == 1_001
    assert points["caught"][0] == pytest.approx(2 / 5)
    assert run.per_round[0] == 1


def test_facts(run):
    found = dict(facts(run))
    assert found["status"] == "done"
    assert found["rounds"] == "6 of 6"
    assert found["accuracy at the end"] == f"{run.outcome.accuracy:.2f} %"
    assert found["precision of rejections"] == f"{run.result['filtering_precision']:.3f}"
    assert "One run with seed 0" in explanation(run)


def stopped(path):
    with pytest.raises(KeyboardInterrupt):
        simulate(SimulationConfig(**SETTINGS), out=path, observers=[stop_in(3)])
    return path


def test_an_unfinished_run_is_shown_as_far_as_it_goes(tmp_path):
    run = read_run(stopped(tmp_path / "run"))
    assert (run.outcome.status, run.outcome.accuracy, run.result) == ("unfinished", None, {})
    assert 0 < len(run.rounds) < 6
    assert "This run is unfinished" in explanation(run)
    assert dict(facts(run))["rounds"] == f"{len(run.rounds)} of 6"
    assert "last accuracy" in dict(facts(run))


def test_a_failed_run_has_its_error(tmp_path):
    path = stopped(tmp_path / "run")
    (path / "error.json").write_text(json.dumps({"error": "Boom <b>\x1b[31m"}), encoding="utf-8")
    outcome = read_run(path).outcome
    assert (outcome.status, outcome.error) == ("failed", "Boom <b> [31m")
    (path / "error.json").write_text("[", encoding="utf-8")
    assert "its error cannot be read" in read_run(path).outcome.error


def test_own_code_is_not_imported_and_where_data_lie_is_not_kept(folder, tmp_path):
    path = copied(folder, tmp_path)
    config = (path / "config.toml").read_text(encoding="utf-8").replace('"krum"', '"nowhere_to_be_found:Mine"')
    (path / "config.toml").write_text(f'data_dir = "/home/lena"\n{config}', encoding="utf-8")
    outcome = read_run(path).outcome
    assert outcome.own
    assert "data_dir" not in outcome.config


@pytest.mark.parametrize("config", ["rounds = [", "rounds = 'six'", "dataset = 3", "seed = 1.5"])
def test_a_configuration_that_makes_no_sense_is_an_error_with_its_name(folder, tmp_path, config):
    path = copied(folder, tmp_path)
    (path / "config.toml").write_text(config, encoding="utf-8")
    with pytest.raises(ValueError, match=r"config\.toml"):
        read_run(path)


@pytest.mark.parametrize("name", ["result.json", "rounds.parquet", "clients.parquet"])
def test_a_damaged_file_is_an_error_with_its_name(folder, tmp_path, name):
    path = copied(folder, tmp_path)
    (path / name).write_bytes(b"PAR1")
    with pytest.raises(ValueError, match=name):
        read_run(path)
