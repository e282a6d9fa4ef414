"""The whole report as one Markdown file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fedra.experiments import Results
from fedra.report.drawing import Drawing
from fedra.report.escaping import markdown
from fedra.report.model import Table
from fedra.report.runs import Runs
from fedra.report.statistics import statistics_lines
from fedra.report.text import measure_markdown, statistics_markdown, table_markdown, winners_markdown
from fedra.report.winners import Winner, agreements

_MOST_FAILURES = 20


def summary_markdown(
    results: Results,
    runs: Runs,
    *,
    title: str,
    tables: Sequence[Table],
    studies: Sequence[Table],
    winners: Sequence[Winner],
    drawings: Sequence[Drawing] = (),
    missing: Sequence[str] = (),
) -> str:
    """Return what was run, all tables, who wins, and the figures."""
    parts = [f"# {markdown(title)}", _counted(results, runs), *_failures(runs)]
    parts += ["## Data", "Table 1 as printed, and how many clients the runs here had.", _statistics(results)]
    if winners:
        parts += ["## Winners", winners_markdown(winners, agreements(winners))]
    if tables:
        parts += ["## The paper's tables", *(table_markdown(table, runs) for table in tables)]
    if studies:
        parts += ["## Other comparisons", *_studies(studies, runs)]
    if drawings:
        parts += ["## Figures", *(_figure(drawing) for drawing in drawings)]
    if missing:
        parts.append(f"No results for {', '.join(missing)}.")
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _counted(results: Results, runs: Runs) -> str:
    states = ", ".join(f"{count} {state}" for state, count in runs.counts().items())
    return f"{len(results.cells)} cells; runs: {states}."


def _failures(runs: Runs) -> Iterator[str]:
    failures = runs.failures()
    lines = [f"- {markdown(run)}: {markdown(error)}" for run, error in failures.items()]
    if len(lines) > _MOST_FAILURES:
        lines = [*lines[:_MOST_FAILURES], f"- and {len(lines) - _MOST_FAILURES} more"]
    if lines:
        yield "Runs with an error:\n\n" + "\n".join(lines)


def _statistics(results: Results) -> str:
    return statistics_markdown(statistics_lines(results))


def _studies(studies: Sequence[Table], runs: Runs) -> Iterator[str]:
    for table in studies:
        yield table_markdown(table, runs)
        yield from filter(
            None,
            [
                measure_markdown(
                    table, runs, "mean_abs_error_malicious", "Mean error of the estimated number of malicious clients"
                )
            ],
        )


def _figure(drawing: Drawing) -> str:
    return f"![{markdown(drawing.caption)}](figures/{drawing.key}.png)"
