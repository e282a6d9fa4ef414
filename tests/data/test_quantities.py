"""Log-normal quantities."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedra.data import DEFAULT_PARTITION_SEEDS, lognormal_quantities
from fedra.seeding import generator

TABLE_1 = {
    "mnist": (60_000, 3025, 179.28, 6820),
    "cifar10": (50_000, 3115, 200.14, 8933),
    "mind": (71_068, 2880, 299.61, 9398),
}


def one_by_one(num_samples: int, seed: int, sigma: float, mu: float) -> list[int]:
    """The specification's procedure, a client at a time."""
    rng = generator(seed, "partition/quantities")
    quantities: list[int] = []
    while (left := num_samples - sum(quantities)) > 0:
        quantities.append(min(left, max(1, math.floor(rng.lognormal(mu, sigma)))))
    return quantities


@given(st.integers(1, 3000), st.integers(0, 2**40), st.floats(0, 4), st.floats(-3, 3))
def test_quantities_are_those_drawn_one_by_one(num_samples: int, seed: int, sigma: float, mu: float) -> None:
    quantities = lognormal_quantities(num_samples, sigma=sigma, mu=mu, seed=seed)
    assert quantities.dtype == np.int64
    assert quantities.tolist() == one_by_one(num_samples, seed, sigma, mu)


def test_many_clients_span_several_blocks() -> None:
    quantities = lognormal_quantities(20_000, sigma=0.5, mu=0.0, seed=3)
    assert len(quantities) > 8192
    assert quantities.tolist() == one_by_one(20_000, 3, 0.5, 0.0)


@pytest.mark.parametrize("name", TABLE_1)
def test_default_seeds_are_near_the_papers_table(name: str) -> None:
    num_samples, clients, std, largest = TABLE_1[name]
    quantities = lognormal_quantities(num_samples, seed=DEFAULT_PARTITION_SEEDS[name])
    assert quantities.sum() == num_samples
    assert len(quantities) == pytest.approx(clients, rel=0.05)
    assert quantities.std(ddof=1) == pytest.approx(std, rel=0.05)
    assert quantities.max() == pytest.approx(largest, rel=0.05)


@pytest.mark.parametrize(
    ("name", "num_samples", "clients", "largest"),
    [
        ("mnist", 60_000, 3060, 7109),
        ("cifar10", 50_000, 3092, 8890),
        ("mind", 71_068, 2912, 9471),
        ("fashion-mnist", 60_000, 3060, 7109),
        ("huffpost", 25_830, 1291, 3800),
        ("digits", 1_438, 140, 280),
    ],
)
def test_default_partitions_never_change(name: str, num_samples: int, clients: int, largest: int) -> None:
    quantities = lognormal_quantities(num_samples, seed=DEFAULT_PARTITION_SEEDS[name])
    assert (len(quantities), quantities.max()) == (clients, largest)


def test_enormous_draws_are_cut_to_the_data() -> None:
    assert lognormal_quantities(10, sigma=1.0, mu=600.0, seed=0).tolist() == [10]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"num_samples": 0}, "num_samples is 0"),
        ({"sigma": -1.0}, "sigma=-1.0"),
        ({"mu": math.nan}, "mu=nan"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_impossible_arguments_are_told(arguments: dict[str, float], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        lognormal_quantities(**({"num_samples": 10, "seed": 0} | arguments))
