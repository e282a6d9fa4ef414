"""Who holds what: which samples each client has, by the kind of partition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedra import checks
from fedra.data.quantities import client_quantities
from fedra.seeding import generator

# Those that cut the data by quantities; and the one that the data themselves, see `fedra.data.owners`, say.
PARTITIONS = ("iid", "non-iid", "dirichlet")
NATURAL = "natural"

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Partition:
    """Client i holds the samples ``order[offsets[i]:offsets[i+1]]``."""

    order: Indices
    offsets: Indices

    @property
    def num_clients(self) -> int:
        """N, the clients of the federation."""
        return len(self.offsets) - 1

    @property
    def quantities(self) -> Indices:
        """q, the samples each client holds."""
        return np.diff(self.offsets)

    def indices(self, client: int) -> Indices:
        """The samples of one client."""
        if not 0 <= client < self.num_clients:
            raise IndexError(f"client {client} of {self.num_clients}; clients count from 0")
        return self.order[self.offsets[client] : self.offsets[client + 1]]


def partition(
    labels: Indices,
    *,
    kind: str = "iid",
    seed: int,
    alpha: float = 0.5,
    max_quantity: int | None = None,
    num_clients: int | None = None,
    quantities: str | None = None,
) -> Partition:
    """Give every sample to one client, in log-normal quantities unless others are stated.

    ``iid`` cuts a shuffled order by the quantities, ``non-iid`` one sorted by label, so that nearly every client holds
    one class; in ``dirichlet`` each client draws its class mix from Dirichlet(``alpha``). ``max_quantity`` caps a
    client's data and quantity together: a client above it keeps a random subset of that size. ``num_clients`` and
    ``quantities`` are those of `client_quantities`; what stated quantities leave over is a random subset.
    """
    checks.choice("kind", kind, PARTITIONS)
    if max_quantity is not None:
        checks.whole("max_quantity", max_quantity, 1)
    checks.number("alpha", alpha, above=0)
    counts = client_quantities(len(labels), num_clients=num_clients, quantities=quantities, seed=seed)
    order = generator(seed, "partition/shuffle").permutation(len(labels)).astype(np.int64)[: counts.sum()]
    if kind != "iid":
        order = order[np.argsort(labels[order], kind="stable")]
    if kind == "dirichlet":
        order = _dirichlet_order(order, labels[order], counts, alpha, generator(seed, "partition/dirichlet"))
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    whole = Partition(order=order, offsets=offsets)
    return whole if max_quantity is None else _capped(whole, max_quantity, seed)


def partition_by_owner(clients: Indices, *, max_quantity: int | None = None, seed: int) -> Partition:
    """Give every sample to the client that holds it, client i being ``clients == i``; `max_quantity` as above."""
    if max_quantity is not None:
        checks.whole("max_quantity", max_quantity, 1)
    order = np.argsort(clients, kind="stable").astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(clients))]).astype(np.int64)
    whole = Partition(order=order, offsets=offsets)
    return whole if max_quantity is None else _capped(whole, max_quantity, seed)


@dataclass(frozen=True, kw_only=True)
class PartitionStatistics:
    """Clients, samples, and mean, standard deviation (ddof=1) and maximum of the clients' quantities."""

    clients: int
    samples: int
    mean: float
    std: float
    max: int


def partition_statistics(partition: Partition) -> PartitionStatistics:
    """The statistics of a partition's quantities."""
    quantities = partition.quantities
    return PartitionStatistics(
        clients=len(quantities),
        samples=int(quantities.sum()),
        mean=float(quantities.mean()),
        std=float(quantities.std(ddof=1)) if len(quantities) > 1 else 0.0,
        max=int(quantities.max()),
    )


def statistics_table(rows: Mapping[str, PartitionStatistics]) -> str:
    """A Markdown table in the layout of the paper's Table 1, one named partition a row."""
    lines = ["| data set | train | clients | mean | std | max |", "|---|---:|---:|---:|---:|---:|"]
    lines += (
        f"| {name} | {row.samples:,} | {row.clients:,} | {row.mean:.2f} | {row.std:.2f} | {row.max:,} |"
        for name, row in rows.items()
    )
    return "\n".join(lines)


def _dirichlet_order(
    by_class: Indices, labels: Indices, quantities: Indices, alpha: float, rng: np.random.Generator
) -> Indices:
    """Reorder ``by_class``, the samples sorted by label, so that the cut gives each client its mix."""
    _, left = np.unique(labels, return_counts=True)
    position = np.cumsum(left) - left
    mixes = rng.dirichlet(np.full(len(left), alpha), size=len(quantities))
    out = np.empty_like(by_class)
    filled = 0
    for quantity, mix in zip(quantities.tolist(), mixes, strict=True):
        taken = _take(quantity, mix, left, rng)
        for label in np.flatnonzero(taken).tolist():
            count = taken[label]
            out[filled : filled + count] = by_class[position[label] : position[label] + count]
            filled += count
        position += taken
        left -= taken
    return out


def _take(quantity: int, mix: npt.NDArray[np.float64], left: Indices, rng: np.random.Generator) -> Indices:
    """Samples per class: multinomial by the mix; what a class lacks is drawn again from the classes that have some."""
    taken = np.zeros_like(left)
    while (missing := quantity - int(taken.sum())) > 0:
        weights = np.where(left > taken, mix, 0.0)
        if not weights.sum() > 0:
            weights = (left - taken).astype(np.float64)
        taken = np.minimum(taken + rng.multinomial(missing, weights / weights.sum()), left)
    return taken


def _capped(whole: Partition, max_quantity: int, seed: int) -> Partition:
    quantities = np.minimum(whole.quantities, max_quantity)
    parts = [
        generator(seed, "partition/cap", client).choice(held, max_quantity, replace=False)
        if len(held := whole.indices(client)) > max_quantity
        else held
        for client in range(whole.num_clients)
    ]
    return Partition(order=np.concatenate(parts), offsets=np.concatenate([[0], np.cumsum(quantities)]).astype(np.int64))
