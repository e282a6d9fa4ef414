"""Partitions: every sample once, the right mixes, the cap, the same bits, the statistics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedra.data import (
    PARTITIONS,
    Partition,
    client_quantities,
    lognormal_quantities,
    partition,
    partition_statistics,
    statistics_table,
)

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


@settings(max_examples=60)
@given(
    st.lists(st.integers(0, 6), min_size=30, max_size=200),
    st.sampled_from(PARTITIONS),
    st.sampled_from(["lognormal sigma=1", "zipf s=1.2", "equal"]),
    st.integers(1, 30),
    st.integers(1, 40),
)
def test_any_kind_takes_any_quantities(labels: list[int], kind: str, law: str, num_clients: int, cap: int) -> None:
    given = {"kind": kind, "seed": 3, "num_clients": num_clients, "quantities": law}
    part = partition(np.array(labels), **given)
    assert part.num_clients == num_clients
    assert np.sort(part.order).tolist() == list(range(len(labels)))
    wanted = client_quantities(len(labels), num_clients=num_clients, quantities=law, seed=3)
    assert part.quantities.tolist() == wanted.tolist()
    capped = partition(np.array(labels), **given, max_quantity=cap)
    assert capped.quantities.tolist() == np.minimum(wanted, cap).tolist()


@pytest.mark.parametrize("kind", PARTITIONS)
def test_what_stated_quantities_leave_over_is_of_all_classes(kind: str) -> None:
    labels = np.repeat(np.arange(10), 100)
    part = partition(labels, kind=kind, seed=1, quantities="300,100,100")
    assert part.quantities.tolist() == [300, 100, 100]
    assert len(set(part.order.tolist())) == 500
    assert np.bincount(labels[part.order]).min() > 25


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
