"""How the runs behind an entry ended, and their figures other than accuracy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from fedra.experiments import Results
from fedra.report.model import Entry

MEASURES = ("filtering_precision", "filtering_recall", "mean_abs_error_malicious")


@dataclass(frozen=True, kw_only=True, eq=False)
class Runs:
    """All runs of the results, by name."""

    results: Results

    @cached_property
    def _lines(self) -> Mapping[str, dict[Any, Any]]:
        lines = self.results.cells.drop_duplicates("run")[["run", "status", "error", *MEASURES]].to_dict("records")
        return {line["run"]: line for line in lines}

    def num_done(self, entry: Entry) -> int:
        """Return how many seeds are done."""
        return self._states(entry).count("done")

    def status(self, entry: Entry) -> str:
        """Return done where all seeds are, else the worst that happened to one."""
        states = self._states(entry)
        return next((state for state in ("failed", "unfinished", "missing") if state in states), "done")

    def measure(self, entry: Entry, name: str) -> float | None:
        """Return the mean of a measure over the runs that have it."""
        values = [self._lines[run][name] for run in entry.runs if run in self._lines]
        known = [float(value) for value in values if pd.notna(value)]
        return sum(known) / len(known) if known else None

    def failures(self) -> dict[str, str]:
        """Return the error of each run that has one."""
        return {run: str(line["error"]) for run, line in self._lines.items() if pd.notna(line["error"])}

    def counts(self) -> dict[str, int]:
        """Return how many runs ended how."""
        states = [line["status"] for line in self._lines.values()]
        return {state: states.count(state) for state in ("done", "failed", "unfinished", "missing") if state in states}

    def _states(self, entry: Entry) -> list[str]:
        return [self._lines[run]["status"] if run in self._lines else "missing" for run in entry.runs]
