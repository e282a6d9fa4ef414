"""How many colluders come, against exact fractions and SciPy."""

from __future__ import annotations

import math
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedra.assess import Colluders, Federation, hypergeometric, over_rounds
from fedra.assess.chances import RISK, more_than


def exact(total: int, marked: int, drawn: int) -> list[Fraction]:
    return [
        Fraction(comb(marked, number) * comb(total - marked, drawn - number), comb(total, drawn))
        for number in range(min(marked, drawn) + 1)
    ]


@st.composite
def urns(draw: st.DrawFn) -> tuple[int, int, int]:
    total = draw(st.integers(1, 400))
    return total, draw(st.integers(0, total)), draw(st.integers(0, total))


@given(urns())
def test_hypergeometric_is_exact(urn: tuple[int, int, int]) -> None:
    found, wanted = hypergeometric(*urn), exact(*urn)
    assert len(found) == len(wanted)
    for number, fraction in enumerate(wanted):
        # Below the smallest normal float there are fewer digits to be had.
        assert math.isclose(found[number], float(fraction), rel_tol=1e-11, abs_tol=1e-300)
        tail = sum(wanted[number + 1 :], Fraction(0))
        assert math.isclose(more_than(found, number), float(tail), rel_tol=1e-11, abs_tol=1e-300)


@pytest.mark.parametrize("urn", [(100, 10, 20), (3025, 303, 50), (100_000, 10_000, 50), (100_000, 49_999, 1000)])
def test_hypergeometric_is_that_of_scipy(urn: tuple[int, int, int]) -> None:
    stats = pytest.importorskip("scipy.stats")
    total, marked, drawn = urn
    wanted = stats.hypergeom(total, marked, drawn).pmf(np.arange(min(marked, drawn) + 1))
    np.testing.assert_allclose(hypergeometric(*urn), wanted, rtol=1e-6, atol=1e-290)


def test_the_largest_federations_are_no_trouble() -> None:
    found = hypergeometric(1_000_000, 499_999, 999_999)
    assert math.isclose(math.fsum(found), 1.0, rel_tol=1e-12)


@given(st.floats(0, 1), st.integers(1, 60))
def test_over_rounds(probability: float, rounds: int) -> None:
    wanted = 1 - (1 - Fraction(probability)) ** rounds
    assert math.isclose(over_rounds(probability, rounds), float(wanted), rel_tol=1e-9, abs_tol=1e-300)


def test_small_chances_do_not_vanish_over_rounds() -> None:
    assert math.isclose(over_rounds(1e-18, 1000), 1e-15, rel_tol=1e-9)


@given(st.integers(3, 300), st.integers(1, 10_000), st.data())
def test_what_may_well_come(total: int, rounds: int, data: st.DataObject) -> None:
    sampled = data.draw(st.integers(3, total))
    liars = data.draw(st.integers(0, (total - 1) // 2))
    federation = Federation.of(np.ones(total), num_sampled=sampled, num_malicious=liars, rounds=rounds)
    colluders = Colluders.of(federation)
    assert colluders.more_than(colluders.usual) <= RISK
    assert colluders.ever_more_than(colluders.most) <= RISK
    if colluders.most:
        assert colluders.ever_more_than(colluders.most - 1) > RISK
    assert colluders.usual <= colluders.most <= min(liars, sampled)
    mean = sum(number * chance for number, chance in enumerate(colluders.probabilities))
    assert math.isclose(colluders.expected, mean, rel_tol=1e-9, abs_tol=1e-12)


def test_where_all_take_part_all_liars_come() -> None:
    colluders = Colluders.of(Federation.of(np.ones(8), num_malicious=2))
    assert colluders.probabilities.tolist() == [0, 0, 1]
    assert (colluders.most, colluders.more_than(1), colluders.more_than(2)) == (2, 1.0, 0.0)
