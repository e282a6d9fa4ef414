"""The paper's tables and figures as grids: what is run, and that it is no more than is needed."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedra import RULES, Family
from fedra.experiments import Grid, GridFolder
from fedra.paper import Reproduction, read_protocols
from fedra.paper.reproduction import DIAGRAM, STATISTICS, TARGETS, paper_rules, table_rules

PROTOCOLS = read_protocols()
QUICK = PROTOCOLS.named("quick")
TABLES = TARGETS[1:7]
IGNORANT = ["krum", "median", "trimmed-mean", "multi-krum", "bulyan"]
OTHERS = ["fedavg", "norm-bound", "rfa", "truncate", "fedra"]


def runs(**choice: Any) -> set[str]:
    grid = Reproduction(**choice).grid()
    return set() if grid is None else set(grid.runs)


@pytest.mark.parametrize("protocol", PROTOCOLS.by_name.values(), ids=lambda protocol: protocol.name)
def test_every_data_set_of_a_protocol_runs_with_its_settings(protocol: Any) -> None:
    for dataset in protocol.datasets:
        grid = Reproduction(protocol=protocol.name, datasets=(dataset,)).grid()
        assert grid is not None
        assert {(cell.partition, cell.setting) for cell in grid.cells} >= {
            ("iid", "fixed"),
            ("iid", "dynamic"),
            ("non-iid", "dynamic"),
        }
        for cell in grid.cells:
            for name, value in protocol.settings(dataset, cell.partition).items():
                assert getattr(cell.config, name) == value
            assert (cell.dataset, cell.config.dataset) == (dataset, dataset)


def test_tables_hold_the_papers_rules() -> None:
    for number in (2, 4, 6):
        assert table_rules(number) == IGNORANT + OTHERS
        assert table_rules(number + 1) == IGNORANT
    assert paper_rules() == [*IGNORANT, *OTHERS, "uniform"]
    assert all(RULES[rule].family is Family.IGNORANT for rule in IGNORANT)


def test_all_of_mnist_is_as_many_runs_as_are_needed() -> None:
    columns = len(QUICK.alpha_q)
    attacks = 3
    tables = 3 * attacks * (len(IGNORANT) + len(OTHERS) * columns)
    clean = 2 * 9
    fixed_non_iid = 5 * columns
    estimates = 3 * attacks * columns
    assert len(runs()) == tables + clean + fixed_non_iid + estimates
    assert runs(targets=("figure6",)) < runs(targets=("figure5",))
    assert runs(targets=("table3",)) < runs(targets=("table2",))
    assert len(runs(targets=("table3",))) == attacks * len(IGNORANT)
    assert len(runs(num_seeds=2)) == 2 * len(runs())


@settings(max_examples=25)
@given(targets=st.lists(st.sampled_from(TARGETS), min_size=1, unique=True), data=st.data())
def test_any_choice_is_the_union_of_its_parts(targets: list[str], data: st.DataObject) -> None:
    rules = data.draw(st.none() | st.lists(st.sampled_from(paper_rules()), min_size=1, unique=True).map(tuple))
    datasets = tuple(data.draw(st.lists(st.sampled_from(list(QUICK.datasets)), min_size=1, max_size=2, unique=True)))
    whole = Reproduction(targets=tuple(targets), rules=rules, datasets=datasets)
    parts = [Reproduction(targets=(target,), rules=rules, datasets=(name,)) for target in targets for name in datasets]
    assert runs(targets=tuple(targets), rules=rules, datasets=datasets) == set().union(
        *(part.grid().runs for part in parts if part.grid() is not None)  # type: ignore[union-attr]
    )
    for target in targets:
        alone = replace(whole, targets=(target,))
        assert (target in whole.absent()) == (alone.grid() is None and target != STATISTICS)
    shuffled = replace(
        whole,
        targets=tuple(data.draw(st.permutations(targets))),
        datasets=tuple(data.draw(st.permutations(datasets))),
        rules=rules and tuple(data.draw(st.permutations(rules))),
    )
    assert shuffled.name == whole.name


def test_names_tell_choices_apart() -> None:
    choices: list[dict[str, Any]] = [
        {},
        {"targets": ("table2",)},
        {"protocol": "full"},
        {"datasets": ("cifar10",)},
        {"num_seeds": 2},
        {"rules": ("fedra",)},
        {"added_rules": ("uniform",)},
        {"added_rules": ({"rule": "fedra", "params": {"gamma": 0.2}},)},
        {"alpha_q": (0.0, 5.0)},
        {"added_attacks": ("ipm",)},
        {"added_attacks": ({"attack": "ipm", "params": {"eps": 10.0}},)},
    ]
    names = [Reproduction(**choice).name for choice in choices]
    assert len(set(names)) == len(names)
    assert all(name.startswith("paper-") for name in names)
    assert names[0] == "paper-quick-30015f30", "as in the committed results"
    assert Reproduction(alpha_q=QUICK.alpha_q).name == Reproduction(data_dir="elsewhere").name == names[0]


def test_figures_are_drawn_over_the_columns_at_hand() -> None:
    def quantities(target: str, **choice: Any) -> set[float | None]:
        grid = Reproduction(targets=(target,), **choice).grid()
        assert grid is not None
        return {cell.alpha_q for cell in grid.cells}

    assert quantities("figure2") == quantities("figure5") == set(QUICK.alpha_q)
    assert quantities("figure2", alpha_q=(3.0,)) == {3.0}
    assert quantities("figure6") == quantities("figure6", alpha_q=(0.0, 10.0)) == {10.0}
    assert quantities("figure6", alpha_q=(0.0, 3.0)) == {0.0, 3.0}
    assert quantities("figure1") == {None}
    grid = Reproduction(targets=("figure1",)).grid()
    assert grid is not None
    assert {(cell.attack, cell.setting) for cell in grid.cells} == {("none", "dynamic")}


def test_a_stand_in_takes_a_place_under_its_own_name_and_only_when_asked_for() -> None:
    assert PROTOCOLS.stands_for["huffpost"] == "mind"
    assert runs(targets=("figure4",)) == set()
    grid = Reproduction(targets=("figure4", "figure2"), datasets=("huffpost", "digits")).grid()
    assert grid is not None
    assert {(cell.dataset, cell.setting) for cell in grid.cells} == {("huffpost", "dynamic"), ("digits", "fixed")}


def test_what_is_absent_is_told() -> None:
    absent = Reproduction(rules=("fedra",)).absent()
    assert set(absent) == {"table3", "table5", "table7", "figure1", DIAGRAM, "figure4"}
    assert "a diagram" in absent[DIAGRAM]
    assert absent["figure4"] == "figure4 is about cifar10 and mind: mnist is not in it"
    assert absent["table3"] == "table3 has none of the rules chosen"
    assert Reproduction(targets=(STATISTICS,)).absent() == {}


def test_an_added_rule_has_a_row_where_its_family_has_one() -> None:
    pooled = {"rule": "fedra", "params": {"variance": "pooled"}, "label": "pooled"}

    def labels(target: str) -> list[str]:
        grid = Reproduction(targets=(target,), rules=("krum", "fedra"), added_rules=(pooled, "uniform")).grid()
        assert grid is not None
        return list(dict.fromkeys(cell.rule for cell in grid.cells))

    for number in (2, 4, 6):
        assert labels(f"table{number}") == ["krum", "fedra", "pooled", "uniform"]
        assert labels(f"table{number + 1}") == ["krum", "uniform"]
    assert labels("figure6") == ["fedra, mcne"]


def test_figure_2_has_fedra_and_added_rules_in_both_panels() -> None:
    grid = Reproduction(targets=("figure2",), added_rules=("uniform",)).grid()
    assert grid is not None
    for partition in ("iid", "non-iid"):
        rules = [cell.rule for cell in grid.cells if cell.partition == partition]
        assert list(dict.fromkeys(rules)) == ["fedavg", "norm-bound", "rfa", "truncate", "fedra", "uniform"]
    assert not any("uniform" in name for name in runs(targets=("figure5",), added_rules=("uniform",)))


def test_added_attacks_are_columns_of_the_tables_and_leave_other_runs_as_they_are() -> None:
    added = ("sign-flip", {"attack": "ipm", "params": {"eps": 10.0}, "label": "strong"})
    for target in TABLES:
        grid = Reproduction(targets=(target,), added_attacks=added).grid()
        assert grid is not None
        attacks = list(dict.fromkeys(cell.attack for cell in grid.cells))
        assert attacks == ["label-flip", "lie", "optimize", "sign-flip", "strong"]
        assert runs(targets=(target,)) < set(grid.runs)
    for target in ("figure1", "figure2", "figure5", "figure6"):
        assert runs(targets=(target,), added_attacks=added) == runs(targets=(target,))


def test_the_family_of_an_added_rule_depends_on_its_parameters_and_what_stands_before() -> None:
    added = (
        {"rule": "median", "params": {}, "before": "nnm"},
        {"rule": "median", "params": {}, "before": "bucketing"},
        {"rule": "rfa", "params": {"weights": "equal"}, "label": "equal"},
        {"rule": "centered-clipping", "params": {"weights": "capped"}, "label": "capped"},
    )
    grid = Reproduction(targets=("table3",), rules=("krum",), added_rules=added).grid()
    assert grid is not None
    assert list(dict.fromkeys(cell.rule for cell in grid.cells)) == ["krum", "nnm+median", "equal"]


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"targets": ("tabel2",)}, "unknown target 'tabel2'; did you mean 'table2'?"),
        ({"targets": ()}, "no target given; valid: table1, table2"),
        ({"protocol": "quik"}, "unknown protocol 'quik'; did you mean 'quick'?"),
        ({"datasets": ("minst",)}, "unknown data set of the quick protocol 'minst'; did you mean 'mnist'?"),
        ({"protocol": "full", "datasets": ("digits",)}, "unknown data set of the full protocol 'digits'"),
        ({"rules": ("fedar",)}, "unknown rule of the paper 'fedar'; did you mean 'fedra'?"),
        ({"added_rules": ("unifrom",)}, "unknown rule 'unifrom'; did you mean 'uniform'?"),
        ({"added_attacks": ("sign-filp",)}, "unknown attack 'sign-filp'; did you mean 'sign-flip'?"),
        ({"added_attacks": ("none",)}, "'none' is no attack that could be added"),
        ({"num_seeds": 0}, "num_seeds=0"),
        ({"alpha_q": ()}, "alpha_q is empty"),
    ],
)
def test_mistakes_are_told(choice: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Reproduction(**choice)


def test_an_added_rule_that_is_there_already_is_told() -> None:
    with pytest.raises(ValueError, match="rules has 'fedra' twice; leave one out, or give it another label"):
        Reproduction(targets=("table2",), added_rules=("fedra",)).grid()


def test_a_folder_takes_more_seeds_but_not_another_protocol(tmp_path: Path) -> None:
    first = Reproduction(targets=("table2", "figure1"))
    first.check_folder(tmp_path)
    grid = first.grid()
    assert grid is not None
    GridFolder(path=tmp_path).record(first.name, grid)
    first.check_folder(tmp_path)
    replace(first, num_seeds=2).check_folder(tmp_path)
    replace(first, rules=("fedra", "uniform"), targets=TARGETS).check_folder(tmp_path)
    replace(first, protocol="full", datasets=("cifar10",)).check_folder(tmp_path)
    for target in ("table2", "figure1"):
        with pytest.raises(ValueError, match=f"cannot mix two protocols.*remove .*/grids/{first.name}.json"):
            replace(first, protocol="full", targets=(target,)).check_folder(tmp_path)


def test_another_grid_in_the_folder_may_do_as_it_likes(tmp_path: Path) -> None:
    first = Reproduction(targets=("table2",))
    other = Grid.from_dict({"datasets": ["mnist"], "settings": ["fixed"], "attacks": ["lie"], "alpha_q": [0]})
    for name in ("study", "paper-study"):
        GridFolder(path=tmp_path).record(name, other)
        first.check_folder(tmp_path)


def test_a_grid_with_settings_of_another_protocol_counts_whatever_its_name(tmp_path: Path) -> None:
    lists = {"datasets": ["mnist"], "settings": ["fixed"], "attacks": ["lie"], "alpha_q": [0]}
    grid = Grid.from_dict({**lists, "fixed": {"rounds": 10_000, "lr": 1e-4, "eval_every": 100}})
    GridFolder(path=tmp_path).record("mine", grid)
    with pytest.raises(ValueError, match=r"has another run for mnist, iid, fixed, 0, lie, 0\.0, fedra .grid mine"):
        Reproduction(targets=("table2",)).check_folder(tmp_path)
