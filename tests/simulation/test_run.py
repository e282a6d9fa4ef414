from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch

import fedra
from fedra.data import Dataset, load_dataset
from fedra.simulation import RoundOutcome, SimulationConfig, simulate


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


def test_progress_is_told_after_each_round() -> None:
    seen: list[RoundOutcome] = []
    simulate(SimulationConfig(rounds=3, eval_every=2), dataset=digits(), progress=seen.append)
    assert [outcome.round for outcome in seen] == [0, 1, 2]
    assert [outcome.accuracy is None for outcome in seen] == [True, False, False]


def test_records_agree_with_each_other() -> None:
    result = simulate(
        SimulationConfig(attack="lie", alpha_q=10, rounds=6, setting="fixed", rule="multi-krum"), dataset=digits()
    )
    clients = result.clients
    assert not clients.duplicated(["round", "client"]).any()
    by_round = clients.assign(
        caught=clients["malicious"] & ~clients["kept"],
        missed=clients["malicious"] & clients["kept"],
        wronged=~clients["malicious"] & ~clients["kept"],
    ).groupby("round")
    sums = by_round[["malicious", "kept", "caught", "missed", "wronged"]].sum()
    columns = ["num_malicious", "num_kept", "caught", "missed", "wronged"]
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
        with pytest.raises(RuntimeError, match="enough"):
            simulate(SimulationConfig(rounds=2), dataset=digits(), progress=_fail)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def _fail(outcome: RoundOutcome) -> None:
    raise RuntimeError("enough")
