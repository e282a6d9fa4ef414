"""How many attackers a rule stands: the red team's own figures, and the numbers that are looked at."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedra.assess import Federation, HonestRound, SyntheticRounds, standing
from fedra.assess.standing import _first
from fedra.redteam import worst_case
from fedra.rules import FedAvg, Median, make_rule


def rounds(count: int = 2, **settings: object) -> list[HonestRound]:
    federation = Federation.of(**{"quantities": [520, 410, 90, 80, 70, 30, 12, 6], **settings})
    made = SyntheticRounds(federation=federation, seed=1, dimension=20)
    return [made.round(number) for number in range(count)]


@pytest.mark.parametrize("name", ["fedavg", "median", "multi-krum", "fedra"])
def test_figures_are_those_of_the_red_team(name: str) -> None:
    rule, made = make_rule(name), rounds()
    result = standing(rule, made, [None, None], budget=15, seed=4)
    for found in result.found[1:]:
        cases = []
        for round_ in made:
            honest = round_.first(8 - found.attackers)
            cases.append(worst_case(rule, honest.updates, honest.quantities, found.attackers, budget=15, seed=4))
        worst = max(cases, key=lambda case: case.harm)
        assert found.cosine == worst.cosine
        assert found.weight == worst.weight
        length = np.linalg.norm(made[cases.index(worst)].first(8 - found.attackers).mean)
        assert math.isclose(found.displacement, worst.distance / length, rel_tol=1e-6)
    assert [found.attackers for found in result.found] == list(range(len(result.found)))


def test_fedavg_is_turned_by_one_and_no_more_is_tried() -> None:
    result = standing(FedAvg(), rounds(), [None, None], budget=10, seed=0)
    assert (result.stands, result.turned_at, result.limit) == (0, 1, 3)
    assert len(result.found) == 2
    assert result.found[0].cosine == pytest.approx(1.0)


def test_a_loud_signal_is_not_turned_by_a_minority() -> None:
    federation = Federation.of(np.full(7, 10_000.0))
    made = SyntheticRounds(federation=federation, signal=10.0, dimension=20)
    result = standing(Median(), [made.round(0)], [None], budget=40, seed=0)
    assert (result.stands, result.turned_at, result.stopped_at) == (3, None, None)


def test_large_rounds_are_halved_not_counted() -> None:
    calls = 0

    def step() -> None:
        nonlocal calls
        calls += 1

    made = rounds(1, quantities=np.full(60, 50.0), num_sampled=60)
    result = standing(make_rule("trimmed-mean"), made, [None], budget=8, seed=0, step=step)
    looked = [found.attackers for found in result.found]
    assert len(looked) < 16
    assert calls == 8 * (len(looked) - 1)
    if result.turned_at is not None:
        assert result.turned_at - 1 in looked
        assert result.stands == result.turned_at - 1


@given(st.integers(1, 500), st.data())
def test_the_first_bad_number_is_looked_at_and_so_is_the_one_before(limit: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(1, limit + 1))
    looked: list[int] = []

    def is_bad(number: int) -> bool:
        looked.append(number)
        return number >= first

    _first(limit, is_bad)
    assert {min(first, limit), max(1, first - 1)} <= set(looked) | {0}
    assert len(looked) <= 2 * limit.bit_length() + 1
    assert all(1 <= number <= limit for number in looked)
