"""Which runs are the paper's: their settings decide."""

import dataclasses

import pytest
from tests.paper.paper_results import grid_cells, paper_data

from fedra.experiments import Grid
from fedra.paper import paper_tables, read_paper
from fedra.paper.matching import has_place, paper_grids, published_figure

LISTS = {
    "datasets": ["mnist"],
    "settings": ["fixed"],
    "rules": ["median", "fedra"],
    "attacks": ["lie"],
    "alpha_q": [0, 10],
    "seeds": [0, 1],
}
QUICK = {"rounds": 250, "lr": 1e-3, "max_quantity": 512}


def paper_data_of(**changed):
    return paper_data(Grid.from_dict({**LISTS, "fixed": QUICK, **changed}).cells, grid="mine")


def outcomes(**changed):
    return paper_data_of(**changed).outcomes


def test_all_that_fedra_paper_makes_has_a_place(data):
    assert all(map(has_place, data.outcomes))
    assert paper_grids(data.outcomes) == {"paper-quick-x"}


def test_the_name_of_a_grid_decides_nothing(cells):
    assert paper_tables(paper_data(cells, grid="mine")) == paper_tables(paper_data(cells))
    shorter = Grid.from_dict({**LISTS, "fixed": {**QUICK, "rounds": 60}}).cells
    assert paper_tables(paper_data(shorter, grid="paper-quick-x")) == ()


@pytest.mark.parametrize(
    "changed",
    [
        {"attacks": ["decoys"]},
        {"attacks": [{"attack": "lie", "label": "lie", "params": {"z": 2.0}}]},
        {"attacks": [{"attack": "lie", "label": "my lie"}]},
        {"attacks": ["none"]},
        {"attacks": ["lie", "none"]},
        {"fixed": {**QUICK, "num_sampled": 40}},
        {"fixed": {**QUICK, "quantity_statistics": "round"}},
        {"datasets": ["fashion-mnist"]},
        {"partitions": ["dirichlet"]},
    ],
)
def test_one_cell_of_another_kind_makes_it_the_users_grid(changed):
    assert paper_grids(outcomes()) == {"mine"}
    assert paper_grids(outcomes(**changed)) == frozenset()


ALL_THREE = ["label-flip", "lie", "optimize"]


def test_an_added_attack_has_a_place_beside_all_of_the_papers():
    added = [*ALL_THREE, "sign-flip", {"attack": "lie", "label": "my lie", "params": {"z": 2.0}}]
    assert paper_grids(outcomes(attacks=added)) == {"mine"}
    (table,) = (t for t in paper_tables(paper_data_of(attacks=added)) if t.number == 2)
    assert list(dict.fromkeys(column.attack for column in table.columns)) == [*ALL_THREE, "sign-flip", "my lie"]
    last = [row.entries[-1].published for row in table.rows]
    assert last == [None] * len(table.rows)


@pytest.mark.parametrize(
    "changed",
    [
        {"attacks": ["lie", "optimize", "sign-flip"]},
        {"attacks": [*ALL_THREE, "none"]},
        {"attacks": [*ALL_THREE, "sign-flip"], "partitions": ["non-iid"], "fixed": {**QUICK, "rounds": 300}},
        {"attacks": [*ALL_THREE, "sign-flip"], "fixed": {**QUICK, "rounds": 60}},
        {"attacks": ["label-flip", "optimize", {"attack": "lie", "label": "lie", "params": {"z": 2.0}}]},
    ],
)
def test_other_attacks_elsewhere_make_it_the_users_grid(changed):
    assert paper_grids(outcomes(**changed)) == frozenset()


def test_a_cell_that_cannot_be_read_decides_nothing():
    found = list(outcomes())
    found[0] = dataclasses.replace(found[0], config={})
    assert paper_grids(found) == {"mine"}
    assert paper_grids(found[:1]) == frozenset()


def figures(**changed):
    return {(outcome.rule, outcome.alpha_q): published_figure(outcome) for outcome in outcomes(**changed)}


def test_published_figures_are_for_runs_like_the_published_ones():
    (median,) = (
        line.accuracy
        for line in read_paper().accuracies
        if (line.table, line.dataset, line.rule, line.attack) == (3, "mnist", "median", "lie")
    )
    expected = {("median", 0.0): median, ("median", 10.0): median, ("fedra", 0.0): 99.20, ("fedra", 10.0): 99.20}
    assert figures() == expected
    assert figures(fixed={**QUICK, "rounds": 600}) == expected
    assert figures(fixed={"rounds": 10_000}) == expected


@pytest.mark.parametrize(
    "changed",
    [
        {"fixed": {}},
        {"fixed": {**QUICK, "rounds": 60}},
        {"fixed": {**QUICK, "lr": 1e-2}},
        {"rules": [{"rule": "fedra", "label": "fedra", "params": {"gamma": 0.5}}]},
        {"attacks": [{"attack": "lie", "label": "lie", "params": {"z": 2.0}}]},
        {"attacks": ["none"]},
        {"alpha_q": [3], "rules": ["fedra"]},
        {"datasets": ["digits"]},
    ],
)
def test_no_other_run_has_one(changed):
    assert set(figures(**changed).values()) == {None}


def test_labels_of_the_users_own_do_not_matter():
    assert figures(rules=[{"rule": "fedra", "label": "mine"}]) == {("mine", 0.0): 99.20, ("mine", 10.0): 99.20}


def test_a_stand_in_has_none():
    assert {
        published_figure(o) for o in paper_data(grid_cells(targets=("table2",), datasets=("huffpost",))).outcomes
    } == {None}
