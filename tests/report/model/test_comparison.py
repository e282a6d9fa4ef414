"""Tables of any grid: rows and columns in the order of its file, figures equal to what one computes by hand."""

import dataclasses
import statistics

import pandas as pd
import pytest
from tests.paper.paper_results import accuracy_of, paper_data, paper_results

from fedra.experiments import Grid, Results
from fedra.report import ReportData, grid_tables
from fedra.report.model.comparison import file_stem

STUDY = {
    "datasets": ["digits"],
    "rules": ["median", {"rule": "fedra", "label": "fedra, pooled", "params": {"variance": "pooled"}}],
    "attacks": ["none", {"attack": "lie", "label": "LIE z=2", "params": {"z": 2.0}}, "optimize"],
    "alpha_q": [0, 10],
    "settings": ["fixed", "dynamic"],
    "seeds": [0, 1],
    "fixed": {"rounds": 20, "eval_every": 10},
}


def test_other_grids_have_a_table_for_each_part():
    tables = grid_tables(paper_data(Grid.from_dict(STUDY).cells, grid="study-x"))
    assert [table.key for table in tables] == ["study-x-digits-iid-fixed", "study-x-digits-iid-dynamic"]
    table = tables[0]
    assert [row.label for row in table.rows] == ["Median", "fedra, pooled"]
    assert [(c.attack_label, c.alpha_q) for c in table.columns] == [
        ("No attack", None),
        ("LIE z=2", 0.0),
        ("LIE z=2", 10.0),
        ("Optimize", 0.0),
        ("Optimize", 10.0),
    ]
    assert all(len(entry.runs) == 2 for row in table.rows for entry in row.entries)
    assert [row.family for row in table.rows] == ["quantity-ignorant", "quantity-robust"]


def test_tables_of_grids_with_like_names_do_not_share_a_file():
    cells = Grid.from_dict({**STUDY, "settings": ["fixed"]}).cells
    first, second = paper_results(cells, grid="a b"), paper_results(cells, grid="a-b")
    frame = pd.concat([first.cells, second.cells], ignore_index=True)
    tables = grid_tables(ReportData.of(Results(cells=frame, curves=first.curves, scores=first.scores)))
    assert [table.key for table in tables] == ["a-b-digits-iid-fixed", "a-b-digits-iid-fixed-2"]


def one_table(**changed):
    (table,) = grid_tables(paper_data(Grid.from_dict({**STUDY, "settings": ["fixed"], **changed}).cells, grid="g"))
    return table


@pytest.mark.parametrize("quantities", [[10, 0], [0, 10], [5, 1, 10, 0], [10, "honest", 0]])
def test_columns_are_in_the_order_of_the_file(quantities):
    expected = [None if alpha_q == "honest" else float(alpha_q) for alpha_q in quantities]
    for attacks in (["optimize", "none", "lie"], ["lie", "optimize", "none"]):
        table = one_table(attacks=attacks, alpha_q=quantities)
        found = [(column.attack, column.alpha_q) for column in table.columns]
        assert found == [(a, q) for a in attacks for q in ([None] if a == "none" else expected)]


def test_rows_are_in_the_order_of_the_file():
    rules = ["truncate", "fedra", "krum", "fedavg"]
    table = one_table(rules=rules)
    assert [row.rule for row in table.rows] == rules
    assert [row.label for row in table.rows] == ["Truncate", "FedRA", "Krum", "FedAvg"]


def test_data_sets_are_in_the_order_of_the_file():
    lists = {**STUDY, "datasets": ["digits", "mnist"], "settings": ["fixed"]}
    tables = grid_tables(paper_data(Grid.from_dict(lists).cells, grid="g"))
    assert [table.dataset for table in tables] == ["digits", "mnist"]
    assert {table.group for table in tables} == {"g"}


def test_means_and_spreads_are_over_seeds():
    cells = Grid.from_dict({**STUDY, "settings": ["fixed"], "seeds": [3, 4, 5]}).cells
    (table,) = grid_tables(paper_data(cells, grid="g"))
    for row in table.rows:
        for column, entry in zip(table.columns, row.entries, strict=True):
            found = [cell for cell in cells if (cell.rule, cell.attack) == (row.rule, column.attack)]
            by_seed = {c.seed: accuracy_of(c) for c in found if column.alpha_q is None or c.alpha_q == column.alpha_q}
            assert entry.mean == pytest.approx(statistics.fmean(by_seed.values()))
            assert entry.std == pytest.approx(statistics.stdev(by_seed.values()))
            assert entry.statuses == ("done",) * 3


def test_only_rules_that_fedra_does_not_have_are_the_users_own():
    cells = Grid.from_dict({**STUDY, "settings": ["fixed"]}).cells
    data = paper_data(cells, grid="g")
    own = [
        dataclasses.replace(outcome, rule="fedra", config={**outcome.config, "rule": "nowhere:Mine"})
        if outcome.rule == "median"
        else outcome
        for outcome in data.outcomes
    ]
    (table,) = grid_tables(dataclasses.replace(data, outcomes=tuple(own)))
    assert {row.rule: row.own for row in table.rows} == {"fedra": True, "fedra, pooled": False}


def test_a_published_figure_is_there_where_all_seeds_have_it():
    data = paper_data(Grid.from_dict({**STUDY, "settings": ["fixed"]}).cells, grid="g")
    (whole,) = grid_tables(data, published=lambda outcome: 50.0 if outcome.rule == "median" else None)
    assert whole.compared
    assert [{entry.published for entry in row.entries} for row in whole.rows] == [{50.0}, {None}]
    (half,) = grid_tables(data, published=lambda outcome: 50.0 if outcome.seed == 0 else None)
    assert not half.compared


def test_grids_that_others_have_tables_for_are_left_out():
    assert grid_tables(paper_data(Grid.from_dict(STUDY).cells, grid="g"), without=["g"]) == ()


@pytest.mark.parametrize("words", ["<script>", "../..", "a\nb", "ä" * 300, "$%&", ""])
def test_file_names_are_harmless(words):
    stem = file_stem(words, "mnist")
    assert set(stem) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert 0 < len(stem) <= 150
