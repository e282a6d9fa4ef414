from __future__ import annotations

import dataclasses
import multiprocessing
import random
import signal
import time
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors import safe_open
from tests.simulation.watching import Calling, Recording, stop_in

import fedra
from fedra.data import Dataset, load_dataset
from fedra.server import Observer, RoundRecord
from fedra.simulation import RoundOutcome, ServerState, Simulation, SimulationConfig, resume, simulate


@cache
def digits() -> Dataset:
    return load_dataset("digits")


def test_the_python_call_of_the_interface() -> None:
    result = simulate(SimulationConfig(dataset="digits", rule="fedra", attack="lie", alpha_q=10, rounds=5, seed=0))
    assert result.final_accuracy == result.rounds["accuracy"].iloc[-1]
    assert result.best_accuracy >= result.final_accuracy
    assert isinstance(result.clients, pd.DataFrame)
    assert len(result.clients) == 5 * 50
    assert result.summary["versions"]["fedra"] == fedra.__version__


def test_records_agree_with_each_other() -> None:
    result = simulate(
        SimulationConfig(attack="lie", alpha_q=10, rounds=6, setting="fixed", rule="multi-krum"), dataset=digits()
    )
    clients = result.clients
    assert not clients.duplicated(["round", "client"]).any()
    by_round = clients.assign(
        caught=clients["malicious"] & ~clients["kept"],
        missed=clients["malicious"] & clients["kept"],
        wrongly_rejected=~clients["malicious"] & ~clients["kept"],
    ).groupby("round")
    sums = by_round[["malicious", "kept", "caught", "missed", "wrongly_rejected"]].sum()
    columns = ["num_malicious", "num_kept", "caught", "missed", "wrongly_rejected"]
    np.testing.assert_array_equal(sums.to_numpy(), result.rounds[columns].to_numpy())
    np.testing.assert_allclose(by_round["weight"].sum(), 1.0)
    assert ((clients["reason"] == "") == clients["kept"]).all()
    assert (clients.loc[~clients["kept"], "weight"] == 0).all()
    caught, dropped = sums["caught"].sum(), (~clients["kept"]).sum()
    assert result.summary["filtering_precision"] == pytest.approx(caught / dropped)
    assert result.summary["filtering_recall"] == pytest.approx(caught / clients["malicious"].sum())
    error = (result.rounds["estimated_malicious"] - result.rounds["num_malicious"]).abs().mean()
    assert result.summary["mean_abs_error_malicious"] == pytest.approx(error)


def test_fedra_holds_where_the_mean_by_quantity_is_captured() -> None:
    def accuracy(rule: str, attack: str) -> float:
        config = SimulationConfig(rule=rule, attack=attack, alpha_q=10, setting="fixed", rounds=60, seed=1)
        return simulate(config, dataset=digits()).final_accuracy

    for attack in ("lie", "optimize"):
        assert accuracy("fedra", attack) > 90
        assert accuracy("fedavg", attack) < 60


def test_the_callers_threads_are_given_back() -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        simulate(SimulationConfig(rounds=1), dataset=digits())
        assert torch.get_num_threads() == 2
        with pytest.raises(KeyboardInterrupt):
            simulate(SimulationConfig(rounds=2), dataset=digits(), observers=[stop_in(0)])
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


CONFIG = SimulationConfig(rounds=5, eval_every=2, checkpoint_every=2, attack="lie", alpha_q=10, num_sampled=10)


def test_observers_see_the_start_each_round_and_the_end(tmp_path: Path) -> None:
    seen = Recording()
    result = simulate(CONFIG, out=tmp_path / "first", dataset=digits(), observers=[seen])
    (info,) = seen.started
    assert (info.run, info.platform, info.rounds, info.rounds_done) == ("first", "simulation", 5, 0)
    assert info.folder == str(tmp_path / "first")
    assert info.rule.startswith("FedRA(")
    assert SimulationConfig.from_dict(info.settings) == CONFIG
    assert seen.ended == [(info, result.summary)]
    assert [record.round for record in seen.rounds] == (result.rounds["round"] + 1).tolist()
    for record, (_, line) in zip(seen.rounds, result.rounds.iterrows(), strict=True):
        assert (record.run, record.rule, record.phase) == ("first", "fedra", "train")
        assert abs(time.time() - record.time) < 600
        assert (record.kept, record.num_malicious) == (line["num_kept"], line["estimated_malicious"])
        assert "; ".join(record.warnings) == line["warnings"]
        for name in ("caught", "missed", "wrongly_rejected"):
            assert record.metrics[name] == line[name]
        assert record.metrics.get("accuracy", np.nan) == pytest.approx(line["accuracy"], nan_ok=True)
    clients = pd.DataFrame([client for record in seen.rounds for client in record.clients])
    shared = ["client", "malicious", "true_quantity", "claimed_quantity", "kept", "weight", "reason"]
    pd.testing.assert_frame_equal(clients[shared], result.clients[shared], check_dtype=False)


def test_observers_change_no_bit_and_see_the_same_without_a_folder(tmp_path: Path) -> None:
    alone, watched, inside = simulate(CONFIG, dataset=digits()), Recording(), Recording()
    found = simulate(CONFIG, dataset=digits(), observers=[watched])
    simulate(CONFIG, dataset=digits(), out=tmp_path / "run", observers=[inside], run="mine")
    assert found.summary["weights_sha256"] == alone.summary["weights_sha256"]
    assert (watched.started[0].run, watched.started[0].folder) == ("digits-iid-fedra-lie-seed0", None)
    assert inside.started[0].run == inside.rounds[0].run == "mine"
    assert [record.metrics for record in watched.rounds] == [record.metrics for record in inside.rounds]


def test_an_observer_sees_a_round_after_its_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "run"
    covered: dict[int, int] = {}

    def look(record: RoundRecord) -> None:
        """Keep how many rounds the checkpoint on disk has."""
        if (path / "checkpoint.safetensors").is_file():
            with safe_open(path / "checkpoint.safetensors", framework="np") as stored:
                covered[record.round] = int(stored.metadata()["round"])

    simulate(CONFIG, out=path, dataset=digits(), observers=[Calling(look)])
    assert covered == {2: 2, 3: 2, 4: 4, 5: 4}


def test_a_resumed_run_says_how_many_rounds_were_done_before(tmp_path: Path) -> None:
    stopped, resumed = Recording(), Recording()
    with pytest.raises(KeyboardInterrupt):
        simulate(CONFIG, out=tmp_path / "run", dataset=digits(), observers=[stopped, stop_in(2)])
    assert stopped.ended == [(stopped.started[0], {})]
    result = resume(tmp_path / "run", dataset=digits(), observers=[resumed])
    assert (resumed.started[0].run, resumed.started[0].rounds_done) == ("run", 3)
    assert [record.round for record in resumed.rounds] == [4, 5]
    assert resumed.ended == [(resumed.started[0], result.summary)]
    again = Recording()
    resume(tmp_path / "run", dataset=digits(), observers=[again])
    assert (again.started, again.rounds, again.ended) == ([], [], [])


def test_a_run_that_fails_ends_for_its_observers_too() -> None:
    seen = Recording()
    config = SimulationConfig(attack="tests.simulation.own:misshapen", setting="fixed", rounds=1)
    with pytest.raises(ValueError, match="misshapen"):
        simulate(config, dataset=digits(), observers=[seen])
    assert seen.ended == [(seen.started[0], {})]


@pytest.mark.parametrize("moment", ["start", "round", "end"])
def test_an_observer_that_fails_costs_neither_the_run_nor_the_others(
    moment: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Failing(Observer):
        pass

    def fail(*given: object) -> None:
        raise RuntimeError("out of order")

    setattr(Failing, moment, fail)
    seen = Recording()
    result = simulate(CONFIG, dataset=digits(), observers=[Failing(), seen])
    assert result.summary["weights_sha256"] == simulate(CONFIG, dataset=digits()).summary["weights_sha256"]
    assert len(seen.rounds) == 5
    assert seen.ended[0][1] == result.summary
    assert "Failing failed, the run continues: RuntimeError: out of order" in caplog.text


def test_what_is_no_observer_is_an_error_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"give instances of fedra\.server\.Observer"):
        simulate(CONFIG, out=tmp_path / "run", dataset=digits(), observers=[print])  # type: ignore[list-item]
    assert not (tmp_path / "run").exists()


REMEMBERING = ("centered-clipping", "tests.simulation.own:Seniority")


@pytest.mark.parametrize("rule", REMEMBERING)
@pytest.mark.parametrize("number", range(5))
def test_a_rule_that_remembers_is_resumed_with_what_it_remembered(tmp_path: Path, rule: str, number: int) -> None:
    config = dataclasses.replace(CONFIG, rule=rule)
    with pytest.raises(KeyboardInterrupt):
        simulate(config, out=tmp_path / "run", dataset=digits(), observers=[stop_in(number)])
    found = resume(tmp_path / "run", dataset=digits(), trust=True)
    expected = simulate(config, dataset=digits())
    assert found.summary["weights_sha256"] == expected.summary["weights_sha256"]
    pd.testing.assert_frame_equal(found.clients, expected.clients, check_exact=True)


@pytest.mark.parametrize("rule", REMEMBERING)
def test_what_a_rule_remembers_matters(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the tests of resuming would prove nothing."""
    config = dataclasses.replace(CONFIG, rule=rule)
    expected = simulate(config, dataset=digits()).summary["weights_sha256"]
    honest = Simulation.step

    def forgetful(simulation: Simulation, state: ServerState) -> tuple[ServerState, RoundOutcome]:
        if state.round == 3:
            state = dataclasses.replace(state, rule=simulation.initial_state().rule)
        return honest(simulation, state)

    monkeypatch.setattr(Simulation, "step", forgetful)
    assert simulate(config, dataset=digits()).summary["weights_sha256"] != expected


@pytest.mark.parametrize("rule", REMEMBERING)
def test_killed_at_a_round_of_chance_a_rule_that_remembers_ends_with_the_same_bits(tmp_path: Path, rule: str) -> None:
    config = dataclasses.replace(CONFIG, rule=rule, rounds=120, checkpoint_every=3, eval_every=60)
    path = tmp_path / "run"
    earliest = random.Random().randrange(3, 30)
    child = multiprocessing.get_context("spawn").Process(target=simulate, args=(config,), kwargs={"out": path})
    child.start()
    try:
        deadline = time.monotonic() + 120
        while last_part(path) <= earliest:
            assert child.is_alive(), f"ended before round {earliest}"
            assert time.monotonic() < deadline
            time.sleep(0.002)
    finally:
        child.kill()
        child.join()
    assert child.exitcode == -signal.SIGKILL
    assert not (path / "result.json").exists()
    seen = Recording()
    found = resume(path, dataset=digits(), trust=True, observers=[seen])
    assert seen.started[0].rounds_done > earliest - config.checkpoint_every
    expected = simulate(config, dataset=digits())
    assert found.summary["weights_sha256"] == expected.summary["weights_sha256"], f"killed after round {earliest}"
    pd.testing.assert_frame_equal(found.rounds, expected.rounds, check_exact=True)


def last_part(path: Path) -> int:
    """Return how many rounds the records on disk have."""
    return max((int(part.stem.rpartition("-")[2]) for part in path.glob("parts/rounds-*.parquet")), default=0)


def test_a_state_that_cannot_be_saved_is_an_error_before_any_work(tmp_path: Path) -> None:
    config = dataclasses.replace(CONFIG, rule="tests.simulation.own:Unstorable")
    with pytest.raises(TypeError, match="'names' in the rule's state is <U8; give a rule's state as a table of NumPy"):
        simulate(config, out=tmp_path / "run", dataset=digits())
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("attack", ["consistent", "adaptive"])
def test_a_run_of_an_attack_that_remembers_goes_on_with_the_same_bits(tmp_path: Path, attack: str) -> None:
    class Stop(Observer):
        def round(self, record: RoundRecord) -> None:
            if record.round == 3:
                raise KeyboardInterrupt

    params = {"budget": 20, "every": 3} if attack == "adaptive" else {}
    config = SimulationConfig(
        attack=attack, attack_params=params, rule="centered-clipping", rounds=7, num_sampled=20, checkpoint_every=2
    )
    expected = simulate(config)
    with pytest.raises(KeyboardInterrupt):
        simulate(config, out=tmp_path / "run", observers=[Stop()])
    found = resume(tmp_path / "run")
    assert found.summary["weights_sha256"] == expected.summary["weights_sha256"]
    pd.testing.assert_frame_equal(found.clients, expected.clients)
