from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.simulation.own import final_bits

from fedra.data import Dataset, load_dataset
from fedra.simulation import Simulation, SimulationConfig, SimulationResult, simulate


@cache
def digits() -> Dataset:
    return load_dataset("digits")


def run(**given: Any) -> SimulationResult:
    return simulate(SimulationConfig.from_dict({"rounds": 5, "eval_every": 2, **given}), dataset=digits())


def bits(**given: Any) -> str:
    return str(run(**given).summary["weights_sha256"])


SETTINGS: list[dict[str, Any]] = [
    {"attack": "lie", "alpha_q": 10},
    {"attack": "label-flip", "attack_params": {"mapping": "random"}, "setting": "fixed", "rule": "rfa"},
    {"attack": "tests.simulation.own:overwhelming", "rule": "median", "optimizer": "fedadam"},
    {"local_epochs": 1, "partition": "dirichlet", "rule": "fedavg", "optimizer": "sgd", "lr": 1.0},
]


@pytest.mark.parametrize("given", SETTINGS[:3])
def test_threads_change_no_bit_of_gradients_in_one_pass(given: dict[str, Any]) -> None:
    assert bits(**given, threads=2) == bits(**given)


@pytest.mark.parametrize("given", SETTINGS)
def test_same_seed_same_bits_twice_in_a_row(given: dict[str, Any]) -> None:
    first, second = run(**given), run(**given)
    assert first.summary["weights_sha256"] == second.summary["weights_sha256"]
    pd.testing.assert_frame_equal(first.rounds, second.rounds, check_exact=True)
    pd.testing.assert_frame_equal(first.clients, second.clients, check_exact=True)
    assert bits(**given, seed=1) != first.summary["weights_sha256"]


def test_same_bits_in_worker_processes_side_by_side() -> None:
    configs = [SimulationConfig(rounds=5, attack="lie", alpha_q=10, seed=seed) for seed in (0, 1, 0, 1)]
    expected = [final_bits(config) for config in configs[:2]]
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as workers:
        found = list(workers.map(final_bits, configs))
    assert found == expected * 2


def test_neither_global_generators_nor_the_callers_threads_matter() -> None:
    expected = bits(attack="lie")
    threads = torch.get_num_threads()
    try:
        np.random.seed(99)  # noqa: NPY002
        torch.manual_seed(99)
        torch.set_num_threads(2)
        before = torch.get_rng_state()
        assert bits(attack="lie") == expected
        assert torch.equal(torch.get_rng_state(), before)
    finally:
        torch.set_num_threads(threads)


def test_neither_a_folder_nor_checkpoints_nor_evaluation_matter(tmp_path: Path) -> None:
    expected = bits(attack="lie")
    config = SimulationConfig(rounds=5, attack="lie", checkpoint_every=2, eval_every=1)
    assert simulate(config, out=tmp_path / "run", dataset=digits()).summary["weights_sha256"] == expected


@cache
def oracle(attack: str, setting: str) -> tuple[dict[str, Any], str]:
    """A rule that was told who is malicious, and the bits of a run with honest claims."""
    given = {"attack": attack, "setting": setting}
    malicious = np.flatnonzero(Simulation(SimulationConfig(**given), digits()).federation.malicious).tolist()  # type: ignore[arg-type]
    given |= {"rule": "tests.simulation.own:Oracle", "rule_params": {"malicious": malicious}}
    result = run(**given)
    assert result.summary["filtering_recall"] == 1
    return given, result.summary["weights_sha256"]


@settings(max_examples=12)
@given(
    alpha_q=st.floats(0, 1e12),
    attack=st.sampled_from(["none", "label-flip", "lie", "optimize"]),
    setting=st.sampled_from(["fixed", "dynamic"]),
)
def test_where_every_attacker_is_left_out_claims_change_no_bit(alpha_q: float, attack: str, setting: str) -> None:
    if attack == "none":
        given, expected = oracle("lie", setting)
        assert bits(**{**given, "attack": "none"}, alpha_q=alpha_q) == expected
    else:
        given, expected = oracle(attack, setting)
        assert bits(**given, alpha_q=alpha_q) == expected


@pytest.mark.parametrize("attack", ["lie", "optimize"])
def test_where_fedra_leaves_every_attacker_out_claims_change_no_bit(attack: str) -> None:
    results = [run(attack=attack, setting="fixed", alpha_q=alpha_q) for alpha_q in (0, 1, 2, 5, 10)]
    assert {result.summary["filtering_recall"] for result in results} == {1.0}
    assert len({result.summary["weights_sha256"] for result in results}) == 1
    claims = {result.clients.loc[result.clients["malicious"], "claimed_quantity"].max() for result in results}
    assert len(claims) == 5
