"""What the paper published: its tables as values, and what its figures show as grids."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

import pandas as pd

BEST_IGNORANT = "best-quantity-ignorant"


@dataclass(frozen=True, kw_only=True)
class PublishedAccuracy:
    """One published accuracy, in percent; `alpha_q` is None where the table has no such column.

    `rule` is a name of `fedra.RULES`, with FedAdam being fedavg, or best-quantity-ignorant.
    """

    table: int
    dataset: str
    partition: str
    setting: str
    rule: str
    attack: str
    alpha_q: float | None
    accuracy: float


@dataclass(frozen=True, kw_only=True)
class DatasetStatistics:
    """A line of Table 1."""

    dataset: str
    num_classes: int
    num_train: int
    num_test: int
    num_clients: int
    mean_quantity: float
    std_quantity: float
    max_quantity: int


@dataclass(frozen=True, kw_only=True)
class Figure:
    """What a figure shows: "accuracy" or "scores", of the cells of `grid`; `round` is when scores are taken."""

    number: int
    shows: str
    grid: Mapping[str, Any]
    round: int | None = None


@dataclass(frozen=True, kw_only=True)
class Paper:
    """All tables and figures; `names` has what the paper calls each data set, attack and rule."""

    names: Mapping[str, str]
    statistics: tuple[DatasetStatistics, ...]
    accuracies: tuple[PublishedAccuracy, ...]
    figures: tuple[Figure, ...]

    def frame(self) -> pd.DataFrame:
        """Return the accuracies, a line for each."""
        return pd.DataFrame([asdict(accuracy) for accuracy in self.accuracies]).astype({"alpha_q": "float64"})

    def figure(self, number: int) -> Figure:
        """Return the figure of this number."""
        return next(figure for figure in self.figures if figure.number == number)

    @cached_property
    def comparisons(self) -> frozenset[int]:
        """The tables that compare families of rules, the best that ignores quantities among them."""
        return frozenset(line.table for line in self.accuracies if line.rule == BEST_IGNORANT)

    @cached_property
    def by_place(self) -> Mapping[tuple[object, ...], float]:
        """The accuracies by data set, partition, setting, rule, attack and alpha_q."""
        return {
            (line.dataset, line.partition, line.setting, line.rule, line.attack, line.alpha_q): line.accuracy
            for line in self.accuracies
        }


@cache
def read_paper() -> Paper:
    """Return the published figures, from published.toml."""
    values = tomllib.loads(files("fedra.paper").joinpath("published.toml").read_text(encoding="utf-8"))
    return Paper(
        names=values["names"],
        statistics=tuple(DatasetStatistics(dataset=name, **line) for name, line in values["statistics"].items()),
        accuracies=tuple(
            accuracy for table in values["tables"] for accuracy in _accuracies(table, tuple(values["alpha_q"]))
        ),
        figures=tuple(Figure(**figure) for figure in values["figures"]),
    )


def _accuracies(table: Mapping[str, Any], columns: tuple[float, ...]) -> Iterator[PublishedAccuracy]:
    for dataset, rules in table["accuracy"].items():
        for rule, attacks in rules.items():
            for attack, figures in attacks.items():
                cells = zip(columns, figures, strict=True) if isinstance(figures, list) else [(None, figures)]
                for alpha_q, accuracy in cells:
                    yield PublishedAccuracy(
                        table=table["number"],
                        dataset=dataset,
                        partition=table["partition"],
                        setting=table["setting"],
                        rule=rule,
                        attack=attack,
                        alpha_q=alpha_q,
                        accuracy=accuracy,
                    )
