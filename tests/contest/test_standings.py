"""Regret by hand: best of a cell less this rule, means over seeds first, the worst first."""

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.contest.contest_results import contest_data, with_accuracies
from tests.report.formats.making import entry, row, table

from fedra.contest import Contest, contest_tables, standings
from fedra.contest.standings import shared_accuracies
from fedra.report.model import Column

COLUMNS = [
    Column(attack="none", alpha_q=None, attack_label="No attack"),
    Column(attack="lie", alpha_q=10.0, attack_label="LIE"),
]


def made(**rules):
    return table(
        [row(name, *map(entry, means)) for name, means in rules.items()], COLUMNS, title="G: D, IID", group="G"
    )


def test_by_hand():
    first, second, third = standings([made(steady=(90, 88), brave=(96, 40), slow=(80, 85))])
    assert [standing.label for standing in (first, second, third)] == ["steady", "slow", "brave"]
    assert (first.worst.points, first.worst.place) == (6, "D, IID: No attack")
    assert (second.worst.points, second.mean_regret) == (16, pytest.approx(9.5))
    assert (third.worst.points, third.worst.place) == (48, "D, IID: LIE, alpha_q 10")
    assert (third.mean_accuracy, third.mean_regret) == (68, 24)
    assert all((standing.of, standing.whole, standing.refused) == (2, True, 0) for standing in (first, second, third))


def test_who_has_not_run_everywhere_comes_last():
    found = standings([made(whole=(90, 50), part=(95, None), other=(90, 60))])
    assert [standing.label for standing in found] == ["other", "whole", "part"]
    assert (len(found[2].regrets), found[2].of, found[2].worst.points) == (1, 2, 0)


def test_a_cell_that_one_rule_has_alone_compares_nothing():
    found = standings([made(one=(90, 50), two=(None, 40))])
    assert {standing.label: (standing.of, standing.worst.points) for standing in found} == {
        "one": (1, 0),
        "two": (1, 10),
    }
    assert standings([made(one=(90, 50))]) == ()
    assert standings([]) == ()


@given(
    st.dictionaries(
        st.text("abcdef", min_size=1, max_size=3),
        st.tuples(*[st.none() | st.floats(0, 100)] * 2),
        min_size=1,
        max_size=6,
    )
)
def test_in_each_cell_somebody_has_no_regret_and_nobody_a_negative_one(rules):
    found = standings([made(**rules)])
    regrets = [regret for standing in found for regret in standing.regrets]
    assert all(regret.points >= 0 for regret in regrets)
    for column in {regret.column for regret in regrets}:
        assert min(regret.points for regret in regrets if regret.column == column) == 0
    assert [s.worst.points for s in found if s.whole] == sorted(s.worst.points for s in found if s.whole)


SEEDS = st.dictionaries(st.integers(0, 4), st.floats(0, 100), max_size=4)


def with_seeds(found):
    return entry(statistics.fmean(found.values()), accuracies=found) if found else None


@given(st.dictionaries(st.text("abcdef", min_size=1, max_size=2), SEEDS, max_size=5))
def test_rules_are_compared_over_the_same_seeds_and_as_many_rules_as_can_be(rules):
    shared = shared_accuracies({rule: with_seeds(found) for rule, found in rules.items()})
    counts = {seed: sum(seed in found for found in rules.values()) for seed in range(5)}
    assert len(shared) == max(counts.values())
    if shared:
        seeds = [seed for seed in range(5) if all(seed in rules[rule] for rule in shared)]
        assert seeds
        assert shared == {rule: pytest.approx(statistics.fmean(rules[rule][seed] for seed in seeds)) for rule in shared}


def test_a_rule_with_more_seeds_is_compared_by_those_that_others_have():
    few, many = {2: 90.0}, {2: 88.0, 3: 50.0, 4: 51.0}
    found = standings([table([row("few", with_seeds(few)), row("many", with_seeds(many))], COLUMNS[:1])])
    assert {standing.rule: standing.worst.points for standing in found} == {"few": 0, "many": 2}


def test_means_over_seeds_come_first():
    contest = Contest(settings=("digits-silos",), rules=("rfa", "median"), attacks=("lie",), seeds=(2, 3))
    seeds = {("rfa", 2): 90.0, ("rfa", 3): 50.0, ("median", 2): 60.0, ("median", 3): 84.0}
    data = with_accuracies(contest_data(contest), lambda outcome: seeds[outcome.rule, outcome.seed])
    found = {standing.rule: standing for standing in standings(contest_tables(data))}
    # Seed by seed rfa would be 34 behind at worst; on the mean it is 2 behind.
    assert found["rfa"].worst.points == pytest.approx(2)
    assert found["median"].worst.points == 0
