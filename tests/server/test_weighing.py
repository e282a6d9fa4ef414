from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedra.screening import LARGEST_CLAIM
from fedra.server.weighing import examples, plain_claim, weigh, whole_numbers

claims = st.floats(1, LARGEST_CLAIM)
weights = st.one_of(st.floats(1e-6, 1), st.just(0.0))
pairs = st.lists(st.tuples(claims, weights), min_size=1, max_size=8).filter(lambda found: any(w for _, w in found))


@given(pairs)
def test_an_average_by_the_claims_handed_on_is_the_rules(found):
    claimed, wanted = [c for c, _ in found], [w for _, w in found]
    weighing = weigh(claimed, wanted)
    numbers = claimed if weighing.claims is None else weighing.claims
    total = sum(wanted)
    for number, share, weight in zip(numbers, weighing.shares, wanted, strict=True):
        assert share == number / sum(numbers)
        assert share == pytest.approx(weight / total, abs=1e-5)
        assert (number == 0) == (weight == 0) or weight / total < 1e-5
    if weighing.claims is not None:
        assert all(type(number) is int and 0 <= number <= LARGEST_CLAIM for number in weighing.claims)


@given(st.lists(claims, min_size=1, max_size=8), st.floats(1e-9, 1e9))
def test_claims_that_weigh_as_the_rule_does_stay(claimed, factor):
    weighing = weigh(claimed, [factor * claim for claim in claimed])
    assert weighing.claims is None
    assert weighing.shares == [claim / sum(claimed) for claim in claimed]


@given(st.lists(st.floats(1, 1000), min_size=3, max_size=8), st.floats(1, LARGEST_CLAIM))
def test_one_claim_however_large_moves_nothing_under_equal_weights(claimed, huge):
    """The unit is a median claim: the others' numbers are at most the largest honest one."""
    weighing = weigh([*claimed, huge], [1.0] * (len(claimed) + 1))
    numbers = [claimed[0]] if weighing.claims is None else weighing.claims
    assert max(numbers) <= max(claimed) + 1


@pytest.mark.parametrize("bad", [[0.0, 0.0], [-1.0, 2.0], [math.nan, 1.0], [math.inf, 1.0], [1.0, math.nan]])
def test_weights_that_are_none(bad):
    assert weigh([5.0, 5.0], bad) is None
    assert examples([5.0, 5.0], bad) == [1, 1]


def test_no_clients():
    assert weigh([], []) is None
    assert examples([], []) == []


@given(pairs)
def test_examples_are_whole_numbers_for_any_weights(found):
    numbers = examples([c for c, _ in found], [w for _, w in found])
    assert len(numbers) == len(found)
    assert all(type(number) is int and 0 <= number <= LARGEST_CLAIM for number in numbers)
    assert sum(numbers) > 0


def test_examples_keep_whole_claims_and_scale_others():
    assert examples([10.0, 30.0], [0.25, 0.75]) == [10, 30]
    assert examples([10.0, 30.0], [0.5, 0.5]) == [10, 10]
    a, b = examples([1.5, 4.5], [0.25, 0.75])
    assert b == 3 * a


def test_equal_shares_become_the_usual_claim():
    assert whole_numbers([0.5, 0.5], 20.4) == [20, 20]
    assert whole_numbers([0.5, 0.5], 0.2) == [1, 1]


def test_a_claim_is_handed_on_as_it_was_sent():
    assert repr(plain_claim(20.0)) == "20"
    assert repr(plain_claim(1.5)) == "1.5"
