"""Partitions: the quantities drawn, every sample once, the right mixes, the cap, the same bits, the statistics."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedra.data import (
    DATASETS,
    PARTITIONS,
    Partition,
    lognormal_quantities,
    partition,
    partition_statistics,
    statistics_table,
)
from fedra.seeding import generator

TABLE_1 = {
    "mnist": (60_000, 3025, 179.28, 6820),
    "cifar10": (50_000, 3115, 200.14, 8933),
    "mind": (71_068, 2880, 299.61, 9398),
}
LABELS = np.random.default_rng(0).integers(0, 10, 60_000)


def classes_per_client(part: Partition, labels: np.ndarray) -> np.ndarray:
    """How many classes each client holds."""
    return np.array([len(np.unique(labels[part.indices(client)])) for client in range(part.num_clients)])


@settings(max_examples=60)
@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=400),
    st.sampled_from(PARTITIONS),
    st.integers(0, 1000),
    st.floats(1e-3, 1e3),
)
def test_every_sample_belongs_to_one_client(labels: list[int], kind: str, seed: int, alpha: float) -> None:
    part = partition(np.array(labels), kind=kind, seed=seed, alpha=alpha)
    assert np.sort(part.order).tolist() == list(range(len(labels)))
    assert part.quantities.tolist() == lognormal_quantities(len(labels), seed=seed).tolist()
    assert part.order.dtype == part.offsets.dtype == np.int64
    joined = np.concatenate([part.indices(client) for client in range(part.num_clients)])
    np.testing.assert_array_equal(joined, part.order)


@settings(max_examples=40)
@given(st.integers(1, 400), st.sampled_from(PARTITIONS), st.integers(0, 1000), st.integers(1, 50))
def test_the_cap_keeps_a_subset_of_each_clients_samples(num_samples: int, kind: str, seed: int, cap: int) -> None:
    labels = np.arange(num_samples) % 3
    whole = partition(labels, kind=kind, seed=seed)
    capped = partition(labels, kind=kind, seed=seed, max_quantity=cap)
    assert capped.quantities.tolist() == np.minimum(whole.quantities, cap).tolist()
    for client in range(whole.num_clients):
        kept = capped.indices(client)
        assert len(set(kept.tolist())) == len(kept)
        assert set(kept.tolist()) <= set(whole.indices(client).tolist())


@pytest.mark.parametrize("kind", PARTITIONS)
def test_the_seed_decides_every_bit(kind: str) -> None:
    first, again, other = (partition(LABELS, kind=kind, seed=seed, max_quantity=512) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first.order, again.order)
    np.testing.assert_array_equal(first.offsets, again.offsets)
    assert first.order[:1000].tolist() != other.order[:1000].tolist()


def test_iid_mixes_classes_and_non_iid_gives_most_clients_one() -> None:
    iid, non_iid = (partition(LABELS, kind=kind, seed=9080) for kind in ("iid", "non-iid"))
    large = iid.quantities >= 100
    assert classes_per_client(iid, LABELS)[large].min() == 10
    assert (classes_per_client(non_iid, LABELS) == 1).mean() > 0.99


def test_large_iid_clients_have_the_global_class_shares() -> None:
    part = partition(LABELS, kind="iid", seed=9080)
    client = int(np.argmax(part.quantities))
    shares = np.bincount(LABELS[part.indices(client)], minlength=10) / part.quantities[client]
    assert np.abs(shares - 0.1).max() < 0.02


def test_dirichlet_concentration_decides_the_skew() -> None:
    held = []
    for alpha in (0.05, 0.5, 100.0):
        part = partition(LABELS, kind="dirichlet", seed=9080, alpha=alpha)
        middle = (part.quantities >= 20) & (part.quantities <= 200)
        held.append(classes_per_client(part, LABELS)[middle].mean())
    assert held[0] < 3
    assert held[0] + 2 < held[1]
    assert held[1] + 2 < held[2]


def test_a_large_concentration_follows_a_uniform_mix_while_classes_last() -> None:
    labels = np.repeat(np.arange(2), [9000, 1000])
    part = partition(labels, kind="dirichlet", seed=1, alpha=1e6)
    early = part.order[:500]
    assert abs(labels[early].mean() - 0.5) < 0.1


def test_the_smallest_concentrations_still_use_every_sample() -> None:
    for alpha in (1e-300, 1e-10):
        part = partition(LABELS[:2000], kind="dirichlet", seed=2, alpha=alpha)
        assert np.sort(part.order).tolist() == list(range(2000))


def test_labels_need_not_be_contiguous() -> None:
    labels = np.array([7, 7, 90, 90, 90, 1000] * 20)
    part = partition(labels, kind="dirichlet", seed=0)
    assert np.sort(part.order).tolist() == list(range(120))


@pytest.mark.parametrize(
    ("arguments", "kind", "problem"),
    [
        ({"kind": "noniid"}, ValueError, r"kind='noniid'; did you mean 'non-iid'\?"),
        ({"kind": 3}, TypeError, "kind=3; valid: iid, non-iid, dirichlet"),
        ({"max_quantity": 0}, ValueError, "max_quantity=0; give a whole number of at least 1"),
        ({"max_quantity": 2.5}, TypeError, "max_quantity=2.5; give a whole number of at least 1"),
        ({"alpha": 0.0}, ValueError, "alpha=0.0; give a finite number above 0"),
        ({"alpha": float("nan")}, ValueError, "alpha=nan"),
        ({"alpha": "0.5"}, TypeError, "alpha='0.5'"),
        ({"labels": np.array([], np.int64)}, ValueError, "num_samples=0"),
    ],
)
def test_impossible_partitions_are_refused(arguments: dict[str, Any], kind: type[Exception], problem: str) -> None:
    with pytest.raises(kind, match=problem):
        partition(**({"labels": LABELS[:50], "seed": 0} | arguments))


def test_a_client_outside_the_federation_is_told() -> None:
    part = partition(LABELS[:50], seed=0)
    with pytest.raises(IndexError, match=f"of {part.num_clients}"):
        part.indices(part.num_clients)
    with pytest.raises(IndexError):
        part.indices(-1)


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
    quantities = lognormal_quantities(num_samples, seed=DATASETS[name].partition_seed)
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
    quantities = lognormal_quantities(num_samples, seed=DATASETS[name].partition_seed)
    assert (len(quantities), quantities.max()) == (clients, largest)


def test_enormous_draws_are_cut_to_the_data() -> None:
    assert lognormal_quantities(10, sigma=1.0, mu=600.0, seed=0).tolist() == [10]


@pytest.mark.parametrize(
    ("arguments", "kind", "problem"),
    [
        ({"num_samples": 0}, ValueError, "num_samples=0; give a whole number of at least 1"),
        ({"num_samples": 2.0}, TypeError, "num_samples=2.0; give a whole number"),
        ({"sigma": -1.0}, ValueError, "sigma=-1.0; give a finite number of at least 0"),
        ({"mu": math.nan}, ValueError, "mu=nan; give a finite number"),
        ({"mu": None}, TypeError, "mu=None; give a finite number"),
        ({"seed": -1}, ValueError, "seed is -1"),
    ],
)
def test_impossible_quantities_are_refused(arguments: dict[str, Any], kind: type[Exception], problem: str) -> None:
    with pytest.raises(kind, match=problem):
        lognormal_quantities(**({"num_samples": 10, "seed": 0} | arguments))


PART = Partition(order=np.arange(4000), offsets=np.array([0, 1, 4, 4000]))


def test_statistics_are_those_of_the_quantities() -> None:
    statistics = partition_statistics(PART)
    assert (statistics.clients, statistics.samples, statistics.max) == (3, 4000, 3996)
    assert statistics.mean == pytest.approx(4000 / 3)
    assert statistics.std == pytest.approx(np.std([1, 3, 3996], ddof=1))


def test_a_lone_client_has_no_spread() -> None:
    assert partition_statistics(Partition(order=np.arange(2), offsets=np.array([0, 2]))).std == 0.0


def test_the_table_has_a_row_for_each_partition() -> None:
    lines = statistics_table({"first": partition_statistics(PART), "second": partition_statistics(PART)}).splitlines()
    assert len(lines) == 4
    assert lines[2] == "| first | 4,000 | 3 | 1333.33 | 2305.94 | 3,996 |"
