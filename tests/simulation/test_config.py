from __future__ import annotations

import dataclasses
import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedra
from fedra.simulation import SimulationConfig, read_toml, to_toml


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"dataset": "digit"}, r"unknown dataset 'digit'; did you mean 'digits'\?"),
        ({"partition": "noniid"}, r"partition='noniid'; did you mean 'non-iid'\?"),
        ({"setting": "fixd"}, r"setting='fixd'; did you mean 'fixed'\?"),
        ({"quantity_statistics": "rounds"}, r"quantity_statistics='rounds'; did you mean 'round'\?"),
        ({"model": "logistics"}, r"unknown model 'logistics'; did you mean 'logistic'\?.*or module:function"),
        ({"rule": "fedrra"}, r"unknown rule 'fedrra'; did you mean 'fedra'\?"),
        ({"rule_params": {"gamma": 0.6}}, "gamma=0.6"),
        ({"attack": "lye"}, r"unknown attack 'lye'; did you mean 'lie'\?"),
        ({"optimizer": "adma"}, r"unknown optimizer 'adma'; did you mean 'adam'\?"),
        ({"optimizer_params": {"lr": 1}}, "optimizer_params has lr=1; give it as the setting lr"),
        ({"rounds": 0}, "rounds=0; give a whole number from 1 to 2147483647"),
        ({"num_sampled": -1}, "num_sampled=-1"),
        ({"eval_every": 0}, "eval_every=0"),
        ({"checkpoint_every": 0}, "checkpoint_every=0"),
        ({"threads": 0}, "threads=0; give a whole number from 1 to 4096"),
        ({"batch_size": 0}, "batch_size=0"),
        ({"max_quantity": 0}, "max_quantity=0"),
        ({"local_epochs": 0}, "local_epochs=0"),
        ({"local_epochs": 1, "local_steps": 1}, "local_epochs=1 and local_steps=1; give one of them"),
        ({"seed": -1}, "seed=-1; give a whole number from 0 to "),
        ({"partition_seed": -1}, "partition_seed=-1"),
        ({"lr": 0}, "lr=0; give a finite number above 0"),
        ({"lr": 10**400}, "lr=.*; give a finite number above 0"),
        ({"local_lr": float("nan")}, "local_lr=nan"),
        ({"dirichlet_alpha": -0.5}, "dirichlet_alpha=-0.5"),
        ({"malicious_ratio": 0.5}, "malicious_ratio=0.5; give a number from 0 up to, not including, 0.5"),
        ({"alpha_q": -1}, "alpha_q=-1; give a finite number of at least 0"),
        ({"claimed_quantity": 0.5}, "claimed_quantity=0.5; give a finite number of at least 1"),
        ({"alpha_q": 1, "claimed_quantity": 10}, "alpha_q=1 and claimed_quantity=10; give one of them"),
        ({"num_sampled": 4}, r"fedra needs n > 2m\+2 for m assumed malicious clients, but has n = 4 and m = 1"),
        ({"rule": "bulyan", "malicious_ratio": 0.3}, r"bulyan needs n >= 4m\+3 for m .*, but has n = 50 and m = 15"),
        ({"rule": "krum", "rule_params": {"num_malicious": 24}}, "has n = 50 and m = 24"),
        ({"assumed_ratio": 0.5}, "assumed_ratio=0.5; give a number from 0 up to, not including, 0.5"),
        ({"assumed_ratio": 0.3, "rule": "bulyan"}, r"bulyan needs n >= 4m\+3 for m .*, but has n = 50 and m = 15"),
        ({"num_clients": 10}, "num_sampled=50 but the federation has only 10 clients; sample fewer"),
        ({"quantities": "equal"}, "quantities='equal' needs the number of clients; give num_clients"),
        ({"quantities": "5,6,7"}, "num_sampled=50 but the federation has only 3 clients; sample fewer"),
        ({"quantities": "5,6", "num_clients": 60}, "num_clients=60, but quantities has 2 numbers"),
        ({"num_clients": 60, "num_malicious": 61}, "num_malicious=61 but the federation has only 60 clients"),
        ({"num_malicious": -1}, "num_malicious=-1; give a whole number from 0"),
        ({"ruond": 3}, r"unknown setting 'ruond'; did you mean 'rounds'\?"),
    ],
)
def test_a_value_out_of_range_is_an_error_before_any_work(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SimulationConfig.from_dict(given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"dataset": 3}, "dataset=3; give a text"),
        ({"dataset": None}, "dataset=None; give a text"),
        ({"data_dir": 7}, "data_dir=7; give a text"),
        ({"rule_params": "gamma=0.1"}, "rule_params='gamma=0.1'; give a table"),
        ({"model_params": None}, "model_params=None; give a table"),
        ({"rounds": 2.5}, "rounds=2.5; give a whole number"),
        ({"rounds": None}, "rounds=None; give a whole number"),
        ({"rounds": True}, "rounds=True; give a whole number"),
        ({"max_quantity": "64"}, "max_quantity='64'; give a whole number"),
        ({"lr": "fast"}, "lr='fast'; give a finite number above 0"),
        ({"local_lr": None}, "local_lr=None; give a finite number above 0"),
        ({"malicious_ratio": "tenth"}, "malicious_ratio='tenth'"),
        ({"alpha_q": "10"}, "alpha_q='10'; give a finite number of at least 0"),
        ({"claimed_quantity": True}, "claimed_quantity=True; give a finite number of at least 1"),
    ],
)
def test_a_value_of_the_wrong_kind_is_another_error(given: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        SimulationConfig.from_dict(given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rule_params": {"gama": 0.1}}, r"rule 'fedra' has no parameter 'gama'; did you mean 'gamma'\?"),
        ({"rule": "uniform", "rule_params": {"clamp": True}}, "rule 'uniform' has no parameter 'clamp'"),
        ({"attack": "lie", "attack_params": {"zed": 1}}, "attack 'lie' has no parameter 'zed'"),
        ({"optimizer_params": {"beta3": 1}}, r"optimizer 'adam' has no parameter 'beta3'; did you mean 'beta[12]'\?"),
        ({"attack": "lie", "attack_params": {"z": "huge"}}, "z='huge'; give a number, or 'max'"),
    ],
)
def test_parameters_of_rules_attacks_and_optimizers_are_checked_by_them(given: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        SimulationConfig.from_dict(given)


def test_the_example_of_the_interface() -> None:
    config = SimulationConfig(dataset="digits", rule="fedra", attack="lie", alpha_q=10, rounds=100, seed=0)
    assert config.attacked
    assert not SimulationConfig().attacked
    assert SimulationConfig(claimed_quantity=9).attacked
    assert config.make_optimizer().lr == 1e-2  # type: ignore[attr-defined]
    assert SimulationConfig(dataset="mnist").learning_rate == 1e-4
    assert SimulationConfig(dataset="tests.simulation.own:blobs").learning_rate == 1e-3
    assert SimulationConfig(dataset="mnist", lr=0.5).learning_rate == 0.5


def test_a_rule_learns_of_the_federation_what_its_parameters_leave_open() -> None:
    config = SimulationConfig(setting="fixed", malicious_ratio=0.2, rule_params={"malicious_ratio": 0.05})
    rule = config.make_rule(140)
    assert (rule.malicious_ratio, rule.num_clients, rule.setting) == (0.05, 140, "fixed")  # type: ignore[attr-defined]
    krum = SimulationConfig(rule="krum", malicious_ratio=0.2).make_rule(140)
    assert krum.malicious_ratio == 0.2  # type: ignore[attr-defined]


def test_what_stands_before_a_rule_knows_the_federation() -> None:
    config = SimulationConfig(rule="trimmed-mean", before="bucketing size=3", malicious_ratio=0.04, seed=7)
    rule = config.make_rule(140)
    expected = fedra.Preceded(
        rule=fedra.TrimmedMean(malicious_ratio=0.04),
        before=fedra.make_preaggregator("bucketing", size=3),
        malicious_ratio=0.04,
        seed=7,
    )
    assert rule == expected
    assert (config.before, config.before_params) == ("bucketing", {"size": 3})
    assert SimulationConfig(before="bucketing", before_params={"size": 3}).to_dict()["before_params"] == {"size": 3}
    assert config.short_name == "digits-iid-bucketing-trimmed-mean-none-seed7"
    assert SimulationConfig.from_dict(config.to_dict()) == config


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"before": "mix"}, "unknown pre-aggregator 'mix'; valid: nnm"),
        ({"before": ""}, "before '' has no name; write a name of"),
        ({"before": "bucketing size"}, "'size' is not of the form NAME=VALUE"),
        ({"before": "bucketing size=0"}, "size=0; give a whole number of at least 1"),
        ({"before": "bucketing size=2", "before_params": {"size": 3}}, "give one of them"),
        ({"before_params": {"size": 3}}, "without before; name a pre-aggregator"),
        ({"rule_params": {"before": "nnm"}}, "give it as the setting before"),
        ({"rule": "krum", "before": "bucketing size=10"}, "after bucketing: krum needs n > 2m"),
    ],
)
def test_mistakes_about_what_stands_before_are_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        SimulationConfig(**given)


def test_a_configuration_goes_through_toml_and_comes_back_equal() -> None:
    config = SimulationConfig(
        rule="multi-krum",
        rule_params={"clamp": True, "num_selected": 20},
        attack="lie",
        attack_params={"z": "max"},
        optimizer="fedadam",
        optimizer_params={"tau": 1e-2},
        alpha_q=2.5,
        data_dir=Path("some/where"),
        max_quantity=64,
        local_steps=3,
    )
    assert SimulationConfig.from_dict(tomllib.loads(to_toml(config))) == config
    assert SimulationConfig.from_dict(tomllib.loads(to_toml(SimulationConfig()))) == SimulationConfig()


def test_a_run_without_a_folder_goes_by_its_settings() -> None:
    config = SimulationConfig(rule="tests.simulation.own:Oracle", attack="lie", seed=4)
    assert config.short_name == "digits-iid-tests.simulation.own.Oracle-lie-seed4"


def test_numbers_of_numpy_are_numbers() -> None:
    config = SimulationConfig(seed=np.int64(3), alpha_q=np.float32(2), rule_params={"gamma": np.float64(0.2)})
    assert SimulationConfig.from_dict(tomllib.loads(to_toml(config))) == config


def test_a_configuration_is_frozen_and_keyword_only() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        SimulationConfig().rounds = 3  # type: ignore[misc]
    with pytest.raises(TypeError):
        SimulationConfig("digits")  # type: ignore[misc]


def test_hyphens_in_a_file_are_underscores(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text('alpha-q = 10\nattack = "lie"\n[rule-params]\ngamma = 0.2\n', encoding="utf-8")
    config = SimulationConfig.from_dict(read_toml(file))
    assert (config.alpha_q, config.rule_params) == (10, {"gamma": 0.2})


def test_a_missing_or_broken_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"there is no configuration file .*none\.toml"):
        read_toml(tmp_path / "none.toml")
    (tmp_path / "broken.toml").write_text("rounds = \n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"broken\.toml is not valid TOML: .*line 1"):
        read_toml(tmp_path / "broken.toml")


def test_a_file_of_quantities_is_read_once_and_then_stands_in_the_configuration(tmp_path: Path) -> None:
    file = tmp_path / "hospitals.txt"
    file.write_text("700\n300\n120\n80\n60\n", encoding="utf-8")
    config = SimulationConfig(quantities=str(file), num_sampled=5, rule="fedavg")
    file.unlink()
    assert config.quantities == "700,300,120,80,60"
    assert SimulationConfig.from_dict(tomllib.loads(to_toml(config))) == config
    assert SimulationConfig(num_clients=60, quantities="lognormal").quantities == "lognormal sigma=3"


def test_a_rule_may_assume_another_ratio_than_the_true_one() -> None:
    config = SimulationConfig(malicious_ratio=0.2, assumed_ratio=0.1)
    assert config.make_rule(100) == fedra.FedRA(malicious_ratio=0.1, num_clients=100, setting="dynamic")
    config = SimulationConfig(malicious_ratio=0.2, assumed_ratio=0.1, rule="median", before="nnm")
    assert config.make_rule(100).malicious_ratio == 0.1  # type: ignore[attr-defined]
    assert SimulationConfig(malicious_ratio=0.2).make_rule(100).malicious_ratio == 0.2  # type: ignore[attr-defined]
