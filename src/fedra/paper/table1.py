"""Table 1: how many clients our federations have, beside the paper's statistics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fedra.data import default_partition_seed, load_dataset, partition, partition_statistics
from fedra.paper.published import DatasetStatistics, read_paper
from fedra.report.appearance import display_name
from fedra.report.formats.markdown import DASH, escaped, lines_markdown
from fedra.report.model.outcomes import Outcome, in_order
from fedra.report.reference import Section, TextTable

_PUBLISHED = ("num_classes", "num_train", "num_test", "num_clients", "mean_quantity", "std_quantity", "max_quantity")
_HEADS = ("data set", "clients, ours", "classes", "training", "test", "clients", "mean quantity", "std", "largest")


@dataclass(frozen=True, kw_only=True)
class StatisticsLine:
    """A data set: the numbers of clients that runs on it had, and what the paper has, None where it has none."""

    dataset: str
    num_clients: tuple[int, ...]
    published: DatasetStatistics | None


def dataset_statistics(dataset: str, data_dir: str | None = None) -> DatasetStatistics:
    """Return our line of Table 1: the data set as it is cut into clients, before any cap on quantities."""
    data = load_dataset(dataset, data_dir)
    clients = partition_statistics(partition(data.train_labels, kind="iid", seed=default_partition_seed(dataset, 0)))
    return DatasetStatistics(
        dataset=dataset,
        num_classes=data.num_classes,
        num_train=len(data.train_labels),
        num_test=len(data.test_labels),
        num_clients=clients.clients,
        mean_quantity=clients.mean,
        std_quantity=clients.std,
        max_quantity=clients.max,
    )


def statistics_lines(outcomes: Iterable[Outcome]) -> tuple[StatisticsLine, ...]:
    """Return a line for each data set of the outcomes, the paper's first."""
    published = {line.dataset: line for line in read_paper().statistics}
    counts: dict[str, set[int]] = {}
    for outcome in outcomes:
        known = {outcome.num_clients} - {None}
        counts.setdefault(outcome.dataset, set()).update(count for count in known if count is not None)
    return tuple(
        StatisticsLine(dataset=dataset, num_clients=tuple(sorted(counts[dataset])), published=published.get(dataset))
        for dataset in in_order(counts, list(published))
    )


def statistics_section(lines: Sequence[StatisticsLine]) -> Section:
    """Return Table 1 as a part of the report."""
    body = [
        [
            display_name(line.dataset),
            _counts(line),
            *(DASH if line.published is None else f"{getattr(line.published, name):,}" for name in _PUBLISHED),
        ]
        for line in lines
    ]
    title = "Table 1: data sets"
    return Section(
        key="statistics",
        title=title,
        caption="As the paper has them, with the number of clients of our partitions. Its third data set is MIND.",
        tables=(TextTable(label=title, heads=_HEADS, lines=body, numbers=frozenset(range(1, 9))),),
        markdown=statistics_markdown(lines),
    )


def statistics_markdown(lines: Iterable[StatisticsLine]) -> str:
    """Return Table 1 as Markdown: what the paper has, and our number of clients."""
    heads = ["data set", "classes", "train", "test", "clients", "clients here", "mean quantity", "std", "max"]
    body = []
    for line in lines:
        name, paper = escaped(display_name(line.dataset)), line.published
        if paper is None:
            body.append([name, *[DASH] * 4, _counts(line), *[DASH] * 3])
            continue
        counts = (f"{count:,}" for count in (paper.num_classes, paper.num_train, paper.num_test, paper.num_clients))
        spread = (f"{paper.mean_quantity:.2f}", f"{paper.std_quantity:.2f}", f"{paper.max_quantity:,}")
        body.append([name, *counts, _counts(line), *spread])
    return lines_markdown(heads, body)


def _counts(line: StatisticsLine) -> str:
    return ", ".join(f"{count:,}" for count in line.num_clients) or DASH
