"""Table 1: how many clients our federations have, beside the paper's statistics."""

from __future__ import annotations

from dataclasses import dataclass

from fedra.experiments import DatasetStatistics, Results, read_paper
from fedra.report.cells import in_order


@dataclass(frozen=True, kw_only=True)
class StatisticsLine:
    """A data set: the numbers of clients that runs on it had, and what the paper printed, None where it has none."""

    dataset: str
    num_clients: tuple[int, ...]
    published: DatasetStatistics | None


def statistics_lines(results: Results) -> tuple[StatisticsLine, ...]:
    """Return a line for each data set of the results, the paper's first."""
    published = {line.dataset: line for line in read_paper().statistics}
    counts: dict[str, set[int]] = {}
    known = results.cells.dropna(subset=["num_clients"])
    for dataset in results.cells["dataset"]:
        counts.setdefault(dataset, set())
    for dataset, count in zip(known["dataset"], known["num_clients"], strict=True):
        counts[dataset].add(int(count))
    return tuple(
        StatisticsLine(dataset=dataset, num_clients=tuple(sorted(counts[dataset])), published=published.get(dataset))
        for dataset in in_order(counts, list(published))
    )
