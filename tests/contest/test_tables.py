"""The contest's tables: all its grids together, in the programme's order, and who refuses where."""

import dataclasses
from types import SimpleNamespace

import pytest
from tests.contest.contest_results import contest_data

from fedra.contest import Contest, contest_tables, read_programme
from fedra.contest.tables import _crowd_note, refusal

SILOS = {"settings": ("digits-silos",), "broken": True}


def test_a_table_for_each_setting(data):
    tables = contest_tables(data)
    assert [table.title for table in tables] == [
        "Contest: MNIST, IID",
        "Contest: MNIST, non-IID",
        "Contest: CIFAR-10, IID",
        "Contest: Digits (10 silos), IID",
    ]
    for table in tables:
        assert len(table.rows) == len(read_programme().rules)
        assert [column.attack for column in table.columns if column.alpha_q != 10] == list(read_programme().attacks)
        assert len(table.columns) == 18
        assert all(entry is not None for row in table.rows for entry in row.entries)
        assert not table.compared


def test_what_attackers_claim_is_said_also_without_alpha_q(data):
    table = contest_tables(data)[0]
    claims = {column.attack: column.claims for column in table.columns if column.alpha_q is None}
    assert claims == {"none": "honest", "adaptive": "chosen"}


def test_broken_assumptions_have_tables_of_their_own(data):
    tables = contest_tables(data, broken=True)
    assert [table.title for table in tables] == [
        "Assumption broken: MNIST, IID",
        *(f"Assumption broken: Digits ({number} silos), IID" for number in (5, 8, 10, 20)),
    ]
    labels = [column.attack_label for column in tables[0].columns]
    times = ("as assumed", "1.5 times", "2 times")
    assert labels == [f"{attack}, {crowd}" for attack in ("Optimize", "Decoys", "Adaptive") for crowd in times]
    assert "The rules assume a share of 0.1" in tables[0].caption
    assert [column.attack_label for column in tables[1].columns][:3] == [
        "No attack",
        "Optimize, 1 attacker",
        "Optimize, 2 attackers",
    ]


def test_calls_add_to_the_same_tables():
    first = Contest(settings=("digits-silos",), rules=("rfa",), attacks=("adaptive", "none"))
    later = Contest(settings=("digits-silos",), rules=("fedavg",), attacks=("none", "lie"), seeds=(3,))
    (table,) = contest_tables(contest_data(first, later))
    assert [row.label for row in table.rows] == ["FedAdam", "RFA"]
    assert [column.attack for column in table.columns] == ["none", "lie", "lie", "adaptive"]
    assert [entry is None for entry in table.rows[0].entries] == [False, False, False, True]


def test_who_refuses_is_said_also_where_the_rule_has_no_run_at_all():
    data = contest_data(Contest(**SILOS, rules=("fedavg",), added_rules=("bulyan",)))
    five, eight, *_ = contest_tables(data, broken=True)
    bulyan = next(row for row in five.rows if row.rule == "bulyan")
    assert set(bulyan.entries) == {None}
    assert set(bulyan.refusals) == set(range(len(five.columns)))
    assert "bulyan needs n >= 4m+3" in bulyan.refusals[0]
    assert not next(row for row in eight.rows if row.rule == "bulyan").refusals
    assert all(not row.refusals for row in five.rows if row.rule == "fedavg")


def test_a_rule_that_was_just_not_run_refuses_nothing():
    some = Contest(**SILOS, rules=("fedavg",))
    other = Contest(**SILOS, rules=("rfa",), attacks=("optimize",))
    for table in contest_tables(contest_data(some, other), broken=True):
        assert not any(row.refusals for row in table.rows)


@pytest.mark.parametrize(
    "rule",
    [
        {"rule": "no_such_module:Rule"},
        {"rule": "bulyan", "rule_params": {"nonsense": 1}},
        {"rule": "bulyan", "rule_params": 3},
        {"rule": 7},
    ],
)
def test_results_of_others_are_not_believed_and_nothing_of_theirs_is_imported(rule):
    assert refusal(rule, {"num_sampled": 5}) == ""


def test_settings_that_name_files_or_code_are_not_looked_at():
    there = {"num_sampled": 5, "quantities": "/nonexistent.txt", "attack": "no_such_module:attack", "data_dir": "/x"}
    assert "bulyan needs" in refusal({"rule": "bulyan"}, there)
    assert refusal({"rule": "fedavg"}, there) == ""
    assert refusal({"rule": "bulyan"}, {"num_sampled": "five"}) == ""


def test_results_without_a_contest_have_no_tables(data):
    others = tuple(dataclasses.replace(outcome, grid="mine") for outcome in data.outcomes)
    assert contest_tables(dataclasses.replace(data, outcomes=others)) == ()


@pytest.mark.parametrize(
    ("config", "attack", "words"),
    [
        ({"malicious_ratio": 0.15, "assumed_ratio": 0.1}, "lie, 1.5 times", "share of 0.1; columns say how many times"),
        ({"num_malicious": 2, "assumed_ratio": 0.05}, "lie", "share of 0.05."),
        ({"malicious_ratio": 0.2}, "lie", ""),
    ],
)
def test_the_share_in_a_caption_is_the_one_that_rules_were_told(config, attack, words):
    note = _crowd_note([SimpleNamespace(config=config, attack=attack)])
    assert words in note if words else note == ""
