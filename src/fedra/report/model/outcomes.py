"""The lines of the results as values, and what several seeds of one place come to."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from fedra.experiments import Grid, Results, read_results
from fedra.experiments.cell_table import STATES
from fedra.experiments.grid import AXES
from fedra.experiments.treatment import TREATMENT_TYPES
from fedra.report.appearance import DISPLAY_NAMES, Names, display_name
from fedra.report.model import DONE, Entry
from fedra.rules import RULES, Family, rule_family

NO_ATTACK = "none"
OWN = "own rule"
# A cell whose seed cannot be read is a failed one, beside those of the seeds that can.
UNKNOWN_SEED = -1
MEASURES = (
    "filtering_precision",
    "filtering_recall",
    "mean_abs_error_malicious",
    "attack_success",
    *TREATMENT_TYPES,
)
FIGURES = ("final_accuracy", "best_accuracy", *MEASURES)
WRONGLY_REJECTED = "wrongly_rejected"
# What the column was called in earlier versions.
_FORMER_NAME = "wronged"

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcome:
    """One cell of a grid: its labels, its run, and how that ended.

    Attributes:
        accuracy: in percent after the last round, None unless the run is done.
        figures: those of `FIGURES` that the run has.
        num_clients: of the federation, None where that is not known.
        config: the run's settings; empty where they cannot be read.
    """

    grid: str
    dataset: str
    partition: str
    setting: str
    rule: str
    attack: str
    alpha_q: float | None
    seed: int
    run: str
    status: str
    error: str
    accuracy: float | None
    figures: Mapping[str, float]
    num_clients: int | None
    config: Mapping[str, Any]

    @property
    def attacked(self) -> bool:
        """Whether malicious clients send anything else than honest ones."""
        return bool(self.config.get("attack", self.attack) != NO_ATTACK)

    @property
    def own(self) -> bool:
        """Whether its rule is the user's own; its code need not be here."""
        return str(self.config.get("rule", self.rule)) not in RULES

    @property
    def family(self) -> str:
        """The family of its rule; an own rule's is not known, but one that ignores quantities shows."""
        name, before = str(self.config.get("rule", self.rule)), self.config.get("before")
        if name in RULES:
            parameters = self.config.get("rule_params")
            return str(rule_family(name, parameters if isinstance(parameters, Mapping) else {}, before))
        # A grid drops alpha_q from the run where the rule does not look at quantities.
        unseen = self.attacked and self.alpha_q is not None and self.config.get("alpha_q") is None
        return str(Family.IGNORANT) if unseen else OWN


@dataclass(frozen=True, kw_only=True, eq=False)
class ReportData:
    """All that a report is made of, read once.

    Attributes:
        results: cells, curves and scores.
        outcomes: the cells as values, in the order of the results.
        names: what things are called in this report.
    """

    results: Results
    outcomes: tuple[Outcome, ...]
    names: Names = field(default_factory=lambda: DISPLAY_NAMES)

    @classmethod
    def of(cls, results: Results) -> ReportData:
        """Take the results apart."""
        return cls(results=results, outcomes=tuple(outcomes_of(results.cells)))

    @classmethod
    def of_cells(cls, cells: pd.DataFrame) -> ReportData:
        """Take apart the cells alone, as `read_results` gives them: enough for tables, without curves and scores."""
        return cls.of(Results(cells=cells, curves=pd.DataFrame(), scores=pd.DataFrame()))

    def name(self, label: str) -> str:
        """Return what people call something."""
        return display_name(label, self.names)

    @cached_property
    def runs(self) -> Mapping[str, Outcome]:
        """The runs by name, each as its first cell has it."""
        return {outcome.run: outcome for outcome in reversed(self.outcomes)}

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many runs ended how."""
        found = Counter(outcome.status for outcome in self.runs.values())
        return {status: found[status] for status in STATES if found[status]}

    @cached_property
    def errors(self) -> dict[str, str]:
        """The error of each run that has one, in the order of the results."""
        found = {run: self.runs[run].error for run in unique(outcome.run for outcome in self.outcomes)}
        return {run: error for run, error in found.items() if error}

    @cached_property
    def curves(self) -> Mapping[str, pd.DataFrame]:
        """The measurements of each run that has any."""
        return {str(run): lines for run, lines in self.results.curves.groupby("run", observed=True)}

    @cached_property
    def scores(self) -> Mapping[str, pd.DataFrame]:
        """The histogram of scores of each run that has any."""
        return {str(run): lines for run, lines in self.results.scores.groupby("run", observed=True)}


def outcomes_of(cells: pd.DataFrame) -> Iterator[Outcome]:
    """Return the lines of a table of cells as values, in their order."""
    configs = {text: json.loads(text) for text in cells["config"].dropna().unique()}
    for line in cells.to_dict("records"):
        figures = {name: float(line[name]) for name in FIGURES if name in line and pd.notna(line[name])}
        yield Outcome(
            grid=line["grid"],
            dataset=line["dataset"],
            partition=line["partition"],
            setting=line["setting"],
            rule=line["rule"],
            attack=line["attack"],
            alpha_q=None if pd.isna(line["alpha_q"]) else float(line["alpha_q"]),
            seed=UNKNOWN_SEED if pd.isna(line["seed"]) else int(line["seed"]),
            run=line["run"],
            status=line["status"],
            error="" if pd.isna(line["error"]) else str(line["error"]),
            accuracy=figures.get("final_accuracy") if line["status"] == DONE else None,
            figures=figures,
            num_clients=None if pd.isna(line["num_clients"]) else int(line["num_clients"]),
            config={} if pd.isna(line["config"]) else configs[line["config"]],
        )


def entry_of(
    outcomes: Iterable[Outcome], published: Callable[[Outcome], float | None] = lambda _outcome: None
) -> Entry | None:
    """Return what the outcomes of one place come to, over seeds; None where there are none.

    Of several runs for one seed, as two calls into one folder make them, the last that is done counts. The entry has a
    published figure where all of its outcomes have that one.
    """
    by_seed: dict[int, Outcome] = {}
    rule = ""
    for outcome in outcomes:
        rule = outcome.rule
        if outcome.accuracy is not None or by_seed.get(outcome.seed, outcome).accuracy is None:
            by_seed[outcome.seed] = outcome
    if not by_seed:
        return None
    chosen = [by_seed[seed] for seed in sorted(by_seed)]
    accuracies = {outcome.seed: outcome.accuracy for outcome in chosen if outcome.accuracy is not None}
    measures = {name: [found.figures[name] for found in chosen if name in found.figures] for name in MEASURES}
    figures = unique(map(published, chosen))
    return Entry(
        mean=statistics.fmean(accuracies.values()) if accuracies else None,
        std=statistics.stdev(accuracies.values()) if len(accuracies) > 1 else None,
        runs=tuple(outcome.run for outcome in chosen),
        statuses=tuple(outcome.status for outcome in chosen),
        published=figures[0] if len(figures) == 1 else None,
        rule=rule,
        measures={name: sum(values) / len(values) for name, values in measures.items() if values},
        accuracies=accuracies,
    )


def earlier_outcomes(out: Path, known: Path | None) -> Iterator[tuple[Path, list[Outcome]]]:
    """Yield what a folder of grids holds already, and what results that are known from elsewhere do, as far as any."""
    if any((out / "grids").glob("*.json")):
        yield out, list(outcomes_of(read_results(out)))
    if known is not None:
        yield known, list(outcomes_of(Results.read(known).cells))


def check_places(grid: Grid, outcomes: Iterable[Outcome], folder: Path) -> None:
    """Raise where other grids of a folder, whose tables a grid is to add to, have other runs in the same places."""
    runs = {tuple(cell.labels.values()): cell.run for cell in grid.cells}
    for outcome in outcomes:
        place = tuple(getattr(outcome, name) for name in AXES.values())
        if runs.get(place, outcome.run) != outcome.run:
            grids = folder / "grids"
            remedy = (
                f"choose another --out, or remove {grids}/{outcome.grid}.json"
                if grids.is_dir()
                else "leave --known out, or name other results"
            )
            raise ValueError(
                f"{folder} has another run for {', '.join(map(str, place))} (grid {outcome.grid}), and a table cannot "
                f"mix two protocols; {remedy}"
            )


def wrongly_rejected(frame: pd.DataFrame) -> pd.Series[Any]:
    """Return how many honest clients were rejected, of a frame of rounds or of curves of any version."""
    return frame[WRONGLY_REJECTED if WRONGLY_REJECTED in frame else _FORMER_NAME]


def unique(values: Iterable[T]) -> list[T]:
    """Return the distinct values, in the order of their first."""
    return list(dict.fromkeys(values))


def in_order(values: Iterable[T], first: Sequence[T]) -> list[T]:
    """Return the distinct values: those of `first` in its order, then the others in their own."""
    found = unique(values)
    return [*(value for value in unique(first) if value in found), *(value for value in found if value not in first)]


def grouped(outcomes: Iterable[Outcome], key: Callable[[Outcome], T]) -> dict[T, list[Outcome]]:
    """Return the outcomes by key, keys in the order of their first outcome."""
    groups: dict[T, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(key(outcome), []).append(outcome)
    return groups
