"""Generators depend on seed, purpose and keys, and on nothing else."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from fedra.seeding import generator

EXPECTED = [369458128, 721303007, 944350416]


def bits(*arguments: object) -> bytes:
    return generator(*arguments).bytes(16)  # type: ignore[arg-type]


def test_the_same_arguments_give_the_same_bits_on_every_machine() -> None:
    # What runs of before were drawn with: other bits would be other runs.
    assert generator(0, "partition").integers(0, 1 << 30, 3).tolist() == EXPECTED
    assert bits(7, "a", 1, 2) == bits(7, "a", 1, 2)


def test_each_argument_counts() -> None:
    draws = [bits(0, "a"), bits(1, "a"), bits(0, "b"), bits(0, "a", 0), bits(0, "a", 1), bits(0, "a", 1, 0)]
    assert all(one != other for one, other in combinations(draws, 2))


def test_drawing_from_one_leaves_others_alone() -> None:
    first = generator(3, "x")
    np.testing.assert_array_equal(first.random(5), generator(3, "x").random(5))
    assert bits(3, "y") == bits(3, "y")


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(ValueError, match="seed is -1; give a whole number >= 0"):
        generator(-1, "x")
