"""Partitions: every sample once, the right mixes, the cap, the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedra.data import PARTITIONS, Partition, lognormal_quantities, partition

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
    ("arguments", "problem"),
    [
        ({"kind": "noniid"}, "unknown partition 'noniid'; did you mean 'non-iid'"),
        ({"max_quantity": 0}, "max_quantity is 0"),
        ({"alpha": 0.0}, "alpha is 0.0"),
        ({"alpha": float("nan")}, "alpha is nan"),
        ({"labels": np.array([], np.int64)}, "num_samples is 0"),
    ],
)
def test_impossible_arguments_are_told(arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        partition(**({"labels": LABELS[:50], "seed": 0} | arguments))


def test_a_client_outside_the_federation_is_told() -> None:
    part = partition(LABELS[:50], seed=0)
    with pytest.raises(IndexError, match=f"of {part.num_clients}"):
        part.indices(part.num_clients)
    with pytest.raises(IndexError):
        part.indices(-1)
