from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedra import RULES, Family
from fedra.experiments import Grid
from fedra.experiments.grid import resolved, run_name
from fedra.simulation import SimulationConfig, simulate

IGNORANT = [name for name, rule in RULES.items() if rule.family is Family.IGNORANT]
BASE = SimulationConfig(dataset="mnist", rule="fedra", attack="lie", alpha_q=10.0, seed=3)
SHORT = {"rounds": 8, "num_sampled": 20}


def expanded(**values: Any) -> Grid:
    return Grid.from_dict(values)


def test_without_lists_it_is_one_default_run() -> None:
    (cell,) = expanded().cells
    assert cell.config == SimulationConfig()
    assert cell.labels == {
        "dataset": "digits",
        "partition": "iid",
        "setting": "dynamic",
        "seed": 0,
        "attack": "none",
        "alpha_q": None,
        "rule": "fedra",
    }


def test_every_combination_is_a_cell() -> None:
    grid = expanded(
        partitions=["iid", "non-iid"], settings=["fixed", "dynamic"], attacks=["lie", "optimize"], alpha_q=[0, 10]
    )
    assert len(grid.cells) == len(grid.runs) == 16
    assert len({tuple(cell.labels.values()) for cell in grid.cells}) == 16


@given(
    rules=st.lists(st.sampled_from(list(RULES)), unique=True, min_size=1),
    alphas=st.lists(st.sampled_from([0, 1, 2, 5, 10]), unique=True, min_size=1),
    attacks=st.lists(st.sampled_from(["none", "lie", "optimize"]), unique=True, min_size=1),
)
def test_only_what_cannot_see_the_claims_shares_runs(rules: list[str], alphas: list[int], attacks: list[str]) -> None:
    grid = expanded(rules=rules, alpha_q=alphas, attacks=attacks)
    lying = [attack for attack in attacks if attack != "none"]
    seeing = [rule for rule in rules if rule not in IGNORANT]
    assert len(grid.cells) == len(rules) * len(alphas) * len(attacks)
    once = len(rules) * (len(attacks) - len(lying)) + (len(rules) - len(seeing)) * len(lying)
    assert len(grid.runs) == once + len(seeing) * len(lying) * len(alphas)
    for cell in grid.cells:
        unseen = cell.rule in IGNORANT or cell.attack == "none"
        assert cell.config.alpha_q == (None if unseen else cell.alpha_q)


@pytest.mark.parametrize("rule", IGNORANT)
def test_a_shared_run_is_the_same_bits_in_every_column(rule: str) -> None:
    told = [
        simulate(SimulationConfig(rule=rule, attack="lie", alpha_q=alpha_q, setting="fixed", **SHORT))
        for alpha_q in (None, 0, 10)
    ]
    assert len({result.summary["weights_sha256"] for result in told}) == 1


def test_a_run_that_sees_the_claims_is_not_the_same_bits() -> None:
    told = [
        simulate(SimulationConfig(rule="fedavg", attack="lie", alpha_q=alpha_q, setting="fixed", **SHORT))
        for alpha_q in (0, 10)
    ]
    assert len({result.summary["weights_sha256"] for result in told}) == 2


def test_entries_may_be_tables() -> None:
    grid = expanded(
        datasets=[{"dataset": "digits", "fixed": {"rounds": 7, "lr": 0.5}}],
        partitions=["iid", {"partition": "non-iid", "fixed": {"rounds": 9}}],
        rules=["fedra", {"rule": "fedra", "params": {"gamma": 0.5}}, {"rule": "rfa", "label": "geometric"}],
        attacks=[{"attack": "lie", "params": {"z": 1.0}, "label": "little"}],
        fixed={"num-sampled": 30, "rounds": 5},
    )
    assert Counter(cell.rule for cell in grid.cells) == {"fedra": 2, "fedra gamma=0.5": 2, "geometric": 2}
    for cell in grid.cells:
        assert cell.config.rounds == (9 if cell.partition == "non-iid" else 7)
        assert (cell.config.lr, cell.config.num_sampled) == (0.5, 30)
        assert (cell.attack, cell.config.attack, cell.config.attack_params) == ("little", "lie", {"z": 1.0})
        assert cell.config.rule_params == ({"gamma": 0.5} if cell.rule == "fedra gamma=0.5" else {})


def test_claims_may_be_honest_under_attack() -> None:
    honest, lying = expanded(attacks=["lie"], rules=["fedavg"], alpha_q=["honest", 10]).cells
    assert (honest.alpha_q, honest.config.alpha_q) == (None, None)
    assert (lying.alpha_q, lying.config.alpha_q) == (10.0, 10.0)


def test_blocks_replace_lists_and_share_cells() -> None:
    grid = expanded(
        rules=["fedavg", "fedra"],
        seeds=[0],
        fixed={"rounds": 5},
        blocks=[{"partitions": ["iid"]}, {"rules": ["fedra"], "seeds": [0, 1], "fixed": {"eval_every": 25}}],
    )
    assert [(cell.rule, cell.seed) for cell in grid.cells] == [("fedavg", 0), ("fedra", 0), ("fedra", 1)]
    assert {cell.config.rounds for cell in grid.cells} == {5}


def test_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "grid.toml"
    file.write_text('rules = ["median", {rule = "fedra", label = "ours"}]\n[fixed]\nrounds = 3\n', encoding="utf-8")
    assert [(cell.rule, cell.config.rounds) for cell in Grid.read(file).cells] == [("median", 3), ("ours", 3)]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"rule": ["fedra"]}, r"a grid has no 'rule'; did you mean 'rules'\?"),
        ({"rules": ["fedar"]}, r"rule fedar: unknown rule 'fedar'; did you mean 'fedra'\?"),
        ({"rules": "fedra"}, r"rules='fedra'; give a list"),
        ({"rules": []}, r"rules=\[\]; give a list of at least one"),
        ({"rules": ["fedra", "fedra"]}, r"rules has 'fedra' twice"),
        ({"rules": [{"label": "x"}]}, r"an entry of rules has no rule"),
        ({"rules": [{"rule": "fedra", "label": [1]}]}, r"label of an entry of rules=\[1\]; give a text"),
        ({"rules": [["fedra"]]}, r"rule=\['fedra'\]; give a text"),
        ({"rules": [{"rule": "fedra", "parms": {}}]}, r"an entry of rules has no 'parms'; did you mean 'params'\?"),
        ({"rules": [{"rule": "fedra", "params": {"gama": 1}}]}, r"no parameter 'gama'; did you mean 'gamma'\?"),
        ({"rules": [{"rule": "fedra", "params": [1]}]}, r"rule_params=\[1\]; give a table"),
        ({"settings": [{"setting": "fixed", "params": {}}]}, r"an entry of settings has no 'params'"),
        ({"alpha_q": [True]}, r"an entry of alpha_q=True; give finite numbers"),
        ({"alpha_q": ["ten"]}, r"an entry of alpha_q='ten'; give finite numbers of at least 0, or 'honest'"),
        ({"alpha_q": [-1], "attacks": ["lie"]}, r"an entry of alpha_q=-1; give finite number"),
        ({"seeds": [0.5]}, r"seed 0.5, .*: seed=0.5; give a whole number"),
        ({"fixed": {"rule": "krum"}}, r"\[fixed\] has rule; give it as a list: rules = \['krum'\]"),
        ({"fixed": {"round": 3}}, r"\[fixed\] has no 'round'; did you mean 'rounds'\?"),
        ({"fixed": 3}, r"\[fixed\]=3; give a table"),
        ({"blocks": {"rules": ["krum"]}}, r"blocks=\{.*write each one under \[\[blocks\]\]"),
        ({"blocks": []}, r"blocks=\[\]; give a list of tables"),
        ({"blocks": [{"rule": ["krum"]}]}, r"a block has no 'rule'; did you mean 'rules'\?"),
        ({"blocks": [{"fixed": {"rounds": 2}}, {"fixed": {"rounds": 3}}]}, r"two different runs for dataset digits"),
        ({"rules": ["bulyan"], "fixed": {"num_sampled": 5}}, r"rule bulyan: .*n"),
    ],
)
def test_mistakes_are_reported(values: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        Grid.from_dict(values)


def test_a_wrong_kind_is_no_wrong_value() -> None:
    for values in ({"rules": "fedra"}, {"fixed": 3}, {"alpha_q": ["ten"]}, {"blocks": [3]}):
        with pytest.raises(TypeError):
            Grid.from_dict(values)
    for values in ({"rules": []}, {"alpha_q": [-1]}, {"alpha_q": [float("nan")]}, {"blocks": []}):
        with pytest.raises(ValueError, match="give "):
            Grid.from_dict(values)


def test_a_name_can_be_read() -> None:
    assert re.fullmatch(r"mnist-iid-dynamic-fedra-lie-q10-seed3-[0-9a-f]{10}", run_name(BASE))


@pytest.mark.parametrize(
    "change",
    [
        {"data_dir": "elsewhere"},
        {"checkpoint_every": 7},
        {"lr": 1e-4},
        {"rule_params": {"gamma": 0.1, "variance": "pooled-root", "drop_ties": True}},
        {"rule_params": {"prior": "number"}},
        {"attack_params": {"z": 1.5}},
    ],
)
def test_what_does_not_change_the_result_keeps_the_name(change: dict[str, Any]) -> None:
    assert run_name(replace(BASE, **change)) == run_name(BASE)


@pytest.mark.parametrize(
    "change",
    [
        {"rounds": 101},
        {"eval_every": 5},
        {"lr": 1e-3},
        {"rule_params": {"gamma": 0.5}},
        {"rule_params": {"variance": "pooled"}},
        {"rule_params": {"variance": "separate"}},
        {"rule_params": {"prior": "set"}},
        {"quantity_statistics": "round"},
        {"attack_params": {"z": "max"}},
        {"alpha_q": 5.0},
        {"alpha_q": None},
        {"partition_seed": 1},
        {"max_quantity": 512},
        {"model_params": {"dropout": 0.0}},
        {"threads": 2},
        {"num_clients": 100},
        {"quantities": "lognormal sigma=2"},
        {"num_malicious": 5},
        {"assumed_ratio": 0.2},
    ],
)
def test_what_changes_the_result_changes_the_name(change: dict[str, Any]) -> None:
    assert run_name(replace(BASE, **change)) != run_name(BASE)


def test_an_option_that_came_later_leaves_names_as_they_were() -> None:
    """Folders of earlier runs are found by their names."""
    assert "prior" not in resolved(BASE)["rule_params"]
    assert resolved(replace(BASE, rule_params={"prior": "set"}))["rule_params"]["prior"] == "set"


def test_what_describes_a_federation_leaves_names_as_they_were() -> None:
    assert run_name(replace(BASE, rule="fedavg")) == "mnist-iid-dynamic-fedavg-lie-q10-seed3-6fcdd10990"
    assert not {"num_clients", "quantities", "num_malicious", "assumed_ratio"} & resolved(BASE).keys()
    stated = replace(BASE, quantities="lognormal sigma=3.0", assumed_ratio=0.1)
    assert run_name(stated) == run_name(BASE)
    silos = replace(BASE, num_clients=60)
    assert run_name(silos) == run_name(replace(silos, quantities="lognormal sigma=3"))


def test_a_federation_can_be_described_in_a_grid() -> None:
    fixed = {"num_clients": 12, "quantities": "zipf s=1", "num_sampled": 12, "num_malicious": 2, "assumed_ratio": 0.05}
    (cell,) = expanded(fixed=fixed, attacks=["lie"]).cells
    assert {name: getattr(cell.config, name) for name in fixed} == fixed


def test_which_quantities_a_rule_believes_counts_where_it_is_not_what_it_was() -> None:
    for name, before in (("rfa", "claims"), ("centered-clipping", "equal")):
        plain = resolved(replace(BASE, rule=name, malicious_ratio=0.2))["rule_params"]
        assert not {"weights", "malicious_ratio"} & plain.keys()
        config = replace(BASE, rule=name, malicious_ratio=0.2)
        assert run_name(replace(config, rule_params={"weights": before})) == run_name(config)
        capped = resolved(replace(config, rule_params={"weights": "capped"}))["rule_params"]
        assert (capped["weights"], capped["malicious_ratio"]) == ("capped", 0.2)


def test_what_stands_before_a_rule_is_part_of_the_run() -> None:
    assert not {"before", "before_params"} & resolved(BASE).keys()
    bucketing = replace(BASE, before="bucketing")
    assert run_name(bucketing) == run_name(replace(BASE, before="bucketing size=2"))
    assert run_name(bucketing) == run_name(replace(BASE, before="bucketing", before_params={"size": 2}))
    names = [run_name(replace(BASE, before=before)) for before in (None, "nnm", "bucketing", "bucketing size=3")]
    assert len(set(names)) == 4
    assert names[1].startswith("mnist-iid-dynamic-nnm-fedra-lie-")
    assert resolved(bucketing)["rule_params"] == resolved(BASE)["rule_params"]


def test_an_entry_of_a_rule_may_say_what_stands_before_it() -> None:
    rules = ["median", {"rule": "median", "before": "nnm"}, {"rule": "rfa", "before": "bucketing size=4", "label": "B"}]
    grid = Grid.from_dict({"rules": [*rules, {"rule": "krum", "before": "arc", "params": {"num_malicious": 2}}]})
    assert [cell.rule for cell in grid.cells] == ["median", "nnm+median", "B", "arc+krum num_malicious=2"]
    configs = [cell.config for cell in grid.cells]
    assert [config.before for config in configs] == [None, "nnm", "bucketing", "arc"]
    assert configs[2].before_params == {"size": 4}
    with pytest.raises(ValueError, match="an entry of attacks has no 'before'"):
        Grid.from_dict({"attacks": [{"attack": "lie", "before": "nnm"}]})
    with pytest.raises(ValueError, match="unknown pre-aggregator 'mnn'"):
        Grid.from_dict({"rules": [{"rule": "median", "before": "mnn"}]})


@pytest.mark.parametrize(
    ("entry", "shared"),
    [
        ({"rule": "median", "before": "nnm"}, True),
        ({"rule": "median", "before": "bucketing"}, False),
        ({"rule": "median", "before": "arc"}, True),
        ({"rule": "centered-clipping", "params": {"weights": "capped"}}, False),
        ({"rule": "rfa", "params": {"weights": "equal"}}, True),
        ({"rule": "rfa"}, False),
    ],
)
def test_whether_claims_are_seen_depends_on_parameters_and_what_stands_before(entry: Any, shared: bool) -> None:
    grid = Grid.from_dict({"rules": [entry], "attacks": ["lie"], "alpha_q": [0, 10]})
    assert (len(grid.runs) == 1) == shared


def test_own_code_makes_a_name_that_is_a_folder() -> None:
    config = SimulationConfig(dataset="tests.simulation.own:blobs", attack="tests.simulation.own:vandal")
    assert re.fullmatch(r"[A-Za-z0-9.-]+", run_name(config))


def test_names_are_those_of_earlier_versions() -> None:
    """A grid's folder of an earlier version goes on: its runs are found by their names."""
    assert run_name(SimulationConfig()) == "digits-iid-dynamic-fedra-none-seed0-5c85f2a865"
    assert run_name(BASE) == "mnist-iid-dynamic-fedra-lie-q10-seed3-0569643977"
    assert run_name(SimulationConfig(attack="decoys")) == "digits-iid-dynamic-fedra-decoys-seed0-d3cf7f368e"


def test_the_quantity_attack_counts_where_the_settings_stand_for_another() -> None:
    assert run_name(replace(BASE, quantity_attack="enlarged")) == run_name(BASE)
    assert run_name(replace(BASE, alpha_q=None, quantity_attack="honest")) == run_name(replace(BASE, alpha_q=None))
    other = run_name(replace(BASE, alpha_q=None, quantity_attack="as-much-as-passes"))
    assert other.startswith("mnist-iid-dynamic-fedra-lie-as-much-as-passes-seed3-")
    assert other.rpartition("-")[2] != run_name(replace(BASE, alpha_q=None)).rpartition("-")[2]


def test_rules_that_refuse_so_few_clients_can_be_left_out() -> None:
    values = {"rules": ["fedavg", "bulyan"], "attacks": ["lie"], "fixed": {"num_sampled": 5}}
    with pytest.raises(ValueError, match=r"rule bulyan: bulyan needs n >= 4m\+3"):
        Grid.from_dict(values)
    grid = Grid.from_dict(values, leave_out_refused=True)
    assert [cell.rule for cell in grid.cells] == ["fedavg"]
    (refused,) = grid.refused
    assert (refused.labels["rule"], refused.labels["attack"]) == ("bulyan", "lie")
    assert refused.reason.startswith("bulyan needs n >= 4m+3")
    with pytest.raises(ValueError, match="unknown rule 'nonesuch'"):
        Grid.from_dict({**values, "rules": ["nonesuch"]}, leave_out_refused=True)
