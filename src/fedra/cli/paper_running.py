"""Doing what `fedra paper` was asked for: data checked, cells run, tables shown, report written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fedra.cli.console import console, errors
from fedra.cli.execution import EngineOptions, Plan, run_plan
from fedra.cli.options import Engines
from fedra.cli.paper_tables import entries_of, tell_statistics, tell_table
from fedra.data import dataset_status
from fedra.experiments import Reproduction, Results
from fedra.experiments.reproduction import DIAGRAM, STATISTICS, dataset_statistics
from fedra.report import build_report, paper_tables
from fedra.report.drawing import require_matplotlib


@dataclass(frozen=True, kw_only=True)
class Work:
    """What is wanted, where it goes, and whether to speak of it on the way."""

    wanted: Reproduction
    out: Path
    machinery: EngineOptions
    report: bool
    silent: bool

    def plan_told(self) -> dict[str, Any]:
        """Tell what would run."""
        plan = self._plan()
        notes = self._note([*self.wanted.absent().values(), *self._missing_data()])
        if plan is None:
            return {"notes": notes}
        if not self.silent:
            plan.print_counts()
            plan.print_runs()
        return {"notes": notes, "grid": plan.name, **plan.as_dict()}

    def done(self) -> dict[str, Any]:
        """Do it, and return what came of it as plain values."""
        plan = self._plan()
        if missing := self._missing_data():
            raise ValueError("; ".join(missing))
        told: dict[str, Any] = {"notes": self._note(self.wanted.absent().values())}
        if self.report:
            require_matplotlib()
        if STATISTICS in self.wanted.targets:
            told["statistics"] = self._statistics()
        if plan is None:
            return told
        if not self.silent:
            plan.print_counts()
        ending = run_plan(plan, self.machinery, silent=self.silent)
        ending.print_summary(quiet=self.silent)
        told |= {"grid": plan.name, **ending.as_dict(), "entries": self._tables()}
        if self.report:
            told["report"] = self._report()
        return told

    def _plan(self) -> Plan | None:
        grid = self.wanted.grid()
        if grid is None:
            absent = self.wanted.absent()
            if STATISTICS not in self.wanted.targets and set(absent) != {DIAGRAM}:
                raise ValueError(f"nothing to run: {'; '.join(absent.values())}")
            return None
        self.wanted.check_folder(self.out)
        return Plan.of(grid, self.out, self.wanted.name)

    def _note(self, notes: Iterable[str]) -> list[str]:
        notes = list(notes)
        if not self.silent:
            for note in notes:
                errors.print(note, soft_wrap=True, markup=False)
        return notes

    def _missing_data(self) -> list[str]:
        """Return a sentence for each data set that is needed here and not there; on a cluster the nodes have them."""
        needed = set(self.wanted.datasets if STATISTICS in self.wanted.targets else ())
        if self.machinery.kind is Engines.LOCAL:
            needed |= self.wanted.needed_datasets()
        return [
            f"{status.name} is {status.state}: {status.remedy}, and name that directory by --data-dir or FEDRA_DATA "
            "(fedra data lists what is there; --datasets digits needs no files)"
            for status in dataset_status(self.wanted.data_dir)
            if status.name in needed and not status.ready
        ]

    def _statistics(self) -> list[dict[str, Any]]:
        ours = [dataset_statistics(name, self.wanted.data_dir) for name in self.wanted.datasets]
        if not self.silent:
            tell_statistics(ours)
        return [asdict(line) for line in ours]

    def _tables(self) -> list[dict[str, Any]]:
        tables = [
            table
            for table in paper_tables(Results.read(self.out))
            if table.key.partition("-")[0] in self.wanted.targets and table.dataset in self.wanted.datasets
        ]
        if not self.silent:
            for table in tables:
                tell_table(table)
        return [entry for table in tables for entry in entries_of(table)]

    def _report(self) -> str:
        if not self.silent:
            errors.print("writing the report", soft_wrap=True)
        page = str(build_report(self.out).page)
        if not self.silent:
            console.print(f"report: {page}", soft_wrap=True, markup=False)
        return page
