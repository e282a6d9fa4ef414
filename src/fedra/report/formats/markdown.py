"""Tables as Markdown, and the whole report as one Markdown file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fedra.report.figures import Drawing
from fedra.report.model import Column, Entry, Table
from fedra.report.model.one_run import OneRun
from fedra.report.model.outcomes import ReportData
from fedra.report.reference import Extension
from fedra.report.repeating import repeating_command
from fedra.untrusted import one_line

DASH = "\N{EN DASH}"
REFUSES = "refuses"
_MINUS = "\N{MINUS SIGN}"
_MOST_FAILURES = 20
_MOST_CLIENTS = 20
_ESTIMATE_ERROR = "Mean error of the estimated number of malicious clients"


def escaped(text: str) -> str:
    """Return a text as Markdown that shows it letter for letter, also in a table."""
    line = one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_{}\[\]()#+!|~$])", r"\\\1", line)


def table_markdown(table: Table) -> str:
    """Return a table as Markdown: ours, in brackets what was published and the difference, the best in bold."""
    lines = [f"**{escaped(table.title)}.** {escaped(table.caption)}"]
    if table.compared:
        lines.append("Ours (published, difference); mean ± standard deviation where there are several seeds.")
    heads = ["rule", *(_head(column) for column in table.columns)]
    body = [
        [
            escaped(row.label),
            *(
                REFUSES if entry is None and place in row.refusals else _entry(entry, top)
                for place, (entry, top) in enumerate(zip(row.entries, best, strict=True))
            ),
        ]
        for row, best in zip(table.rows, table.best, strict=True)
    ]
    return "\n\n".join(lines) + "\n\n" + lines_markdown(heads, body)


def measure_markdown(table: Table, measure: str, title: str) -> str:
    """Return another figure of the same cells as Markdown; empty where no run has it."""
    body = []
    for row in table.rows:
        values = [entry and entry.measures.get(measure) for entry in row.entries]
        if any(value is not None for value in values):
            body.append([escaped(row.label), *(DASH if value is None else f"{value:.2f}" for value in values)])
    if not body:
        return ""
    return f"{title}:\n\n" + lines_markdown(["rule", *(_head(column) for column in table.columns)], body)


def estimate_markdown(table: Table) -> str:
    """Return how far the estimated number of malicious clients was off, as Markdown; empty where no rule estimated."""
    return measure_markdown(table, "mean_abs_error_malicious", _ESTIMATE_ERROR)


def lines_markdown(heads: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table whose first column is text and whose others are figures; cells are Markdown already."""
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *body]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def summary_markdown(
    data: ReportData,
    extension: Extension,
    tables: Sequence[Table],
    *,
    title: str,
    source: str = "",
    drawings: Sequence[Drawing] = (),
    missing: Sequence[str] = (),
) -> str:
    """Return what was run, all tables, what the extension adds, and the figures."""
    counts = ", ".join(f"{count} {status}" for status, count in data.counts.items())
    parts = [f"# {escaped(title)}", f"{len(data.outcomes)} cells; runs: {counts}.", *_failures(data)]
    parts += _sections(extension, first=True)
    if extension.tables:
        parts += [f"## {extension.heading}", *(table_markdown(table) for table in extension.tables)]
    parts += _sections(extension, first=False)
    if tables:
        parts.append(f"## {'Other comparisons' if extension.tables else 'Comparisons'}")
        parts += [text for table in tables for text in (table_markdown(table), estimate_markdown(table)) if text]
    if any(table.compared for table in (*extension.tables, *tables)):
        parts.append(f"Published figures: {source}.")
    parts += _figures(drawings)
    if missing:
        parts.append(f"No results for {', '.join(missing)}.")
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def run_markdown(
    run: OneRun, *, title: str, facts: Sequence[tuple[str, str]], text: str, drawings: Sequence[Drawing] = ()
) -> str:
    """Return what one run was and what came of it.

    Args:
        run: the run.
        title: for people.
        facts: its figures, by what they are.
        text: what they mean.
        drawings: its figures.
    """
    parts = [f"# {escaped(title)}", lines_markdown(["", ""], [[escaped(k), escaped(v)] for k, v in facts]), text]
    rejected = run.rejected_clients[run.rejected_clients["rejected"] > 0]
    if len(rejected):
        heads = ["client", "malicious", "rounds", "rejected", "last reason"]
        body = [
            [str(line["client"]), "yes" if line["malicious"] else "no", *_texts(line, "rounds", "rejected", "reason")]
            for line in rejected.head(_MOST_CLIENTS).to_dict("records")
        ]
        more = f"and {len(rejected) - _MOST_CLIENTS:,} more, in tables/clients.csv" if len(rejected) > len(body) else ""
        parts += ["## Most often rejected", lines_markdown(heads, body), *([more] if more else [])]
    parts += _figures(drawings)
    settings = [[escaped(name), escaped(str(value))] for name, value in sorted(run.outcome.config.items())]
    parts += ["## Configuration", lines_markdown(["setting", "value"], settings)]
    parts.append(f"Repeat it with: {escaped(repeating_command(run.outcome.config))}")
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def signed(value: float, digits: int = 2) -> str:
    """Return a difference with its sign."""
    return f"{value:+.{digits}f}".replace("-", _MINUS)


def _head(column: Column) -> str:
    quantity = "" if column.alpha_q is None else f", alpha\\_q {column.alpha_q:g}"
    return f"{escaped(column.attack_label)}{quantity}"


def _entry(entry: Entry | None, best: bool) -> str:
    if entry is None:
        return DASH
    text = _ours(entry, best)
    if entry.published is not None:
        difference = "" if entry.difference is None else f", {signed(entry.difference)}"
        text += f" ({entry.published:.2f}{difference})"
    return f"{text} {escaped(entry.by)}" if entry.by else text


def _ours(entry: Entry, best: bool) -> str:
    if entry.mean is None:
        return entry.reason
    figure = f"**{entry.mean:.2f}**" if best else f"{entry.mean:.2f}"
    spread = "" if entry.std is None else f" ± {entry.std:.2f}"
    part = "" if entry.num_done == len(entry.runs) else f" [{entry.num_done} of {len(entry.runs)} seeds]"
    return f"{figure}{spread}{part}"


def _texts(line: Mapping[Any, Any], *names: str) -> list[str]:
    return [escaped(str(line[name])) for name in names]


def _failures(data: ReportData) -> Iterator[str]:
    lines = [f"- {escaped(run)}: {escaped(error)}" for run, error in data.errors.items()]
    if len(lines) > _MOST_FAILURES:
        lines = [*lines[:_MOST_FAILURES], f"- and {len(lines) - _MOST_FAILURES} more"]
    if lines:
        yield "Runs with an error:\n\n" + "\n".join(lines)


def _sections(extension: Extension, *, first: bool) -> Iterator[str]:
    for section in extension.sections:
        if section.first == first:
            yield from filter(None, (f"## {section.title}", section.caption, section.markdown))


def _figures(drawings: Sequence[Drawing]) -> list[str]:
    pictures = [f"![{escaped(drawing.caption)}](figures/{drawing.key}.png)" for drawing in drawings]
    return ["## Figures", *pictures] if pictures else []
