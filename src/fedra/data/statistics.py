"""A partition's row in the paper's Table 1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fedra.data.partition import Partition


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
