"""The cells of the results as values, and what several seeds of one place come to."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pandas as pd

from fedra.experiments import Results
from fedra.report.model import Entry
from fedra.rules import RULES, Family

PAPER_GRIDS = "paper"
NO_ATTACK = "none"
OWN = "own rule"
# A cell whose seed cannot be read is a failed one, beside those of the seeds that can.
UNKNOWN_SEED = -1

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, kw_only=True, eq=False)
class ReportCell:
    """One cell: its labels, its run, and how that ended; accuracy in percent, None unless it is done."""

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
    accuracy: float | None
    config: dict[str, Any]

    @property
    def is_paper(self) -> bool:
        """Whether it belongs to the paper's tables and figures."""
        return self.grid.startswith(PAPER_GRIDS)

    @property
    def attacked(self) -> bool:
        """Whether malicious clients send anything else than honest ones."""
        return bool(self.config.get("attack", self.attack) != NO_ATTACK)

    @property
    def family(self) -> str:
        """The family of its rule; an own rule's code need not be here, but one that ignores quantities shows."""
        known = RULES.get(str(self.config.get("rule", self.rule)))
        if known is not None:
            return str(known.family)
        # A grid drops alpha_q from the run where the rule does not look at quantities.
        unseen = self.attacked and self.alpha_q is not None and self.config.get("alpha_q") is None
        return str(Family.IGNORANT) if unseen else OWN


def report_cells(results: Results) -> list[ReportCell]:
    """Return all cells, in the order of the results."""
    configs = {text: json.loads(text) for text in results.cells["config"].dropna().unique()}
    return [
        ReportCell(
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
            accuracy=_accuracy(line),
            config=configs.get(line["config"], {}),
        )
        for line in results.cells.to_dict("records")
    ]


def _accuracy(line: dict[Hashable, Any]) -> float | None:
    return float(line["final_accuracy"]) if line["status"] == "done" and pd.notna(line["final_accuracy"]) else None


def entry_of(cells: Iterable[ReportCell], published: float | None = None) -> Entry | None:
    """Return what the cells of one place come to, over seeds; None where there are none.

    Of several runs for one seed, as two protocols in one folder make them, the last that is done counts.
    """
    by_seed: dict[int, ReportCell] = {}
    rule = ""
    for cell in cells:
        rule = cell.rule
        if cell.accuracy is not None or by_seed.get(cell.seed, cell).accuracy is None:
            by_seed[cell.seed] = cell
    if not by_seed:
        return None
    chosen = [by_seed[seed] for seed in sorted(by_seed)]
    accuracies = [cell.accuracy for cell in chosen if cell.accuracy is not None]
    return Entry(
        mean=statistics.fmean(accuracies) if accuracies else None,
        std=statistics.stdev(accuracies) if len(accuracies) > 1 else None,
        runs=tuple(cell.run for cell in chosen),
        published=published,
        rule=rule,
    )


def unique(values: Iterable[T]) -> list[T]:
    """Return the distinct values, in the order of their first."""
    return list(dict.fromkeys(values))


def in_order(values: Iterable[T], first: Sequence[T]) -> list[T]:
    """Return the distinct values: those of `first` in its order, then the others in their own."""
    found = unique(values)
    return [*(value for value in unique(first) if value in found), *(value for value in found if value not in first)]


def grouped(cells: Iterable[ReportCell], key: Callable[[ReportCell], T]) -> dict[T, list[ReportCell]]:
    """Return the cells by key, keys in the order of their first cell."""
    groups: dict[T, list[ReportCell]] = {}
    for cell in cells:
        groups.setdefault(key(cell), []).append(cell)
    return groups
