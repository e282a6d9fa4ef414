"""What `fedra paper` and `fedra contest` have in common: a grid that is run for its tables and its report."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fedra.cli.console import console, errors

if TYPE_CHECKING:
    from fedra.cli.execution import EngineOptions, Plan
    from fedra.experiments import Grid
    from fedra.report import Reference
    from fedra.report.model.outcomes import ReportData

Values = dict[str, Any]


def _nothing() -> Values:
    return {}


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What is to be run, where it goes, and whether to print anything on the way.

    Attributes:
        grid: its cells; None where there is nothing to run.
        name: the grid's in its folder.
        notes: what the reader should know beforehand, a line each.
        missing_data: a line for each data set that is needed here and not there.
        tables: called with the results; prints the tables and returns them as plain values.
        reference: what the report adds for these grids.
        out: the folder.
        known: results from elsewhere, whose runs are not run again.
        engine_options: where runs go.
        track: trackers that watch each run.
        report: whether to write one.
        silent: whether nothing is printed.
        before: makes and prints what needs no runs, and returns it as plain values.
    """

    grid: Grid | None
    name: str
    notes: Iterable[str]
    missing_data: Iterable[str]
    tables: Callable[[ReportData], Values]
    reference: Reference
    out: Path
    known: Path | None
    engine_options: EngineOptions
    track: tuple[str, ...]
    report: bool
    silent: bool
    before: Callable[[], Values] = _nothing

    def carry_out(self, *, dry_run: bool, as_json: bool) -> None:
        """Plan it or run it, and end the command: JSON where it is asked for, exit code 1 where a run failed."""
        outcome = self._plan() if dry_run else self._run()
        if as_json:
            typer.echo(json.dumps(outcome, indent=2))
        if outcome.get("failed"):
            raise typer.Exit(1)

    def _plan(self) -> Values:
        plan = self._planned()
        notes = self._note([*self.notes, *self.missing_data])
        if plan is None:
            return {"notes": notes}
        plan.check(self.engine_options)
        if not self.silent:
            plan.print_counts()
            plan.print_runs()
        return {"notes": notes, "grid": self.name, **plan.as_dict()}

    def _run(self) -> Values:
        from fedra.cli.execution import run_plan
        from fedra.report.figures import require_matplotlib
        from fedra.report.model.outcomes import ReportData

        plan = self._planned()
        if missing := list(self.missing_data):
            raise ValueError("; ".join(missing))
        if plan is not None:
            plan.check(self.engine_options)
        outcome: Values = {"notes": self._note(self.notes)}
        if self.report:
            require_matplotlib()
        outcome |= self.before()
        if plan is None:
            return outcome
        if not self.silent:
            plan.print_counts()
        ending = run_plan(plan, self.engine_options, silent=self.silent, track=self.track)
        ending.print_summary(quiet=self.silent)
        data = ReportData.of(plan.results())
        outcome |= {"grid": self.name, **ending.as_dict(), **self.tables(data)}
        if self.report:
            outcome["report"] = self._report(data)
        return outcome

    def _planned(self) -> Plan | None:
        from fedra.cli.execution import Plan

        return None if self.grid is None else Plan.of(self.grid, self.out, self.name, self.known)

    def _note(self, notes: Iterable[str]) -> list[str]:
        notes = list(notes)
        if not self.silent:
            for note in notes:
                errors.print(note, soft_wrap=True, markup=False)
        return notes

    def _report(self, data: ReportData) -> str:
        from fedra.files import folder_inside
        from fedra.report import write_report

        if not self.silent:
            errors.print("writing the report", soft_wrap=True)
        page = str(write_report(data, folder_inside(self.out, "report"), reference=self.reference).page)
        if not self.silent:
            console.print(f"report: {page}", soft_wrap=True, markup=False)
        return page
