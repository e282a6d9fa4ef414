"""Tables as Markdown, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby, pairwise

from fedra.report.escaping import latex, markdown
from fedra.report.model import Column, Entry, Row, Table
from fedra.report.names import printed
from fedra.report.runs import MEASURES, Runs
from fedra.report.statistics import StatisticsLine
from fedra.report.winners import Agreement, Winner

_MINUS, _DASH = "\N{MINUS SIGN}", "\N{EN DASH}"
_CSV_COLUMNS = (
    *("table", "number", "dataset", "partition", "setting", "row", "family", "rule", "attack", "alpha_q"),
    *("mean", "std", "seeds", "published", "difference", "status", *MEASURES, "runs"),
)


def table_markdown(table: Table, runs: Runs) -> str:
    """Return a table as Markdown: ours, in brackets what the paper printed and the difference, the best in bold."""
    best = _best(table)
    lines = [f"**{markdown(table.title)}.** {markdown(table.caption)}"]
    if _is_compared(table):
        lines.append("Ours (published, difference); mean ± standard deviation where there are several seeds.")
    heads = ["rule", *(_head(column) for column in table.columns)]
    body = [
        [markdown(row.label), *(_markdown(entry, row, top, runs) for entry, top in zip(row.entries, best, strict=True))]
        for row in table.rows
    ]
    return "\n\n".join(lines) + "\n\n" + grid_markdown(heads, body)


def measure_markdown(table: Table, runs: Runs, measure: str, what: str) -> str:
    """Return another figure of the same cells as Markdown; empty where no run has it."""
    body = []
    for row in table.rows:
        values = [entry and runs.measure(entry, measure) for entry in row.entries]
        if any(value is not None for value in values):
            body.append([markdown(row.label), *(_DASH if value is None else f"{value:.2f}" for value in values)])
    if not body:
        return ""
    return f"{what}:\n\n" + grid_markdown(["rule", *(_head(column) for column in table.columns)], body)


def grid_markdown(heads: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table whose first column is text and whose others are figures; cells are Markdown already."""
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *body]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def table_csv(tables: Iterable[Table], runs: Runs) -> str:
    """Return tables as one CSV, a line for each entry."""
    lines = [
        [
            *(table.key, table.number, table.dataset, table.partition, table.setting, row.label, row.family),
            *(entry.rule, column.attack, _number(column.alpha_q, "g")),
            *(_number(entry.mean), _number(entry.std), runs.num_done(entry)),
            *(_number(entry.published, ".2f"), _number(entry.difference), runs.status(entry)),
            *(_number(runs.measure(entry, measure)) for measure in MEASURES),
            " ".join(entry.runs),
        ]
        for table in tables
        for row in table.rows
        for column, entry in zip(table.columns, row.entries, strict=True)
        if entry is not None
    ]
    return _csv(_CSV_COLUMNS, lines)


def table_latex(table: Table, runs: Runs) -> str:
    r"""Return a table as LaTeX that needs \usepackage{booktabs} and nothing else."""
    best = _best(table)
    groups = [(label, len(list(group))) for label, group in groupby(c.attack_label for c in table.columns)]
    ends = [1]
    for _, width in groups:
        ends.append(ends[-1] + width)
    heads = [" & ".join(["", *(rf"\multicolumn{{{width}}}{{c}}{{{latex(label)}}}" for label, width in groups)])]
    rules = "".join(rf"\cmidrule(lr){{{begin + 1}-{end}}}" for begin, end in pairwise(ends))
    if any(column.alpha_q is not None for column in table.columns):
        heads.append(" & ".join(["", *(_latex_quantity(column) for column in table.columns)]))
    body = [
        " & ".join(
            [latex(row.label), *(_latex(entry, top, runs) for entry, top in zip(row.entries, best, strict=True))]
        )
        for row in table.rows
    ]
    lines = [
        r"\begin{table}[t]",
        r"\centering",
        r"\small",
        rf"\caption{{{latex(table.title)}. {latex(table.caption)}{_latex_reading(table)}}}",
        rf"\label{{tab:{table.key}}}",
        rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
        r"\toprule",
        rf"{heads[0]} \\",
        rules,
        *(rf"{head} \\" for head in heads[1:]),
        *([r"\midrule"] if len(heads) > 1 else []),
        *(rf"{line} \\" for line in body),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def winners_markdown(found: Sequence[Winner], shares: Sequence[Agreement]) -> str:
    """Return the winner of each column in the paper and here, and the share of agreement."""
    heads = ["table", "columns", "same winner", "share"]
    lines = [[markdown(a.title), str(a.columns), str(a.same), f"{a.share:.0%}"] for a in shares]
    each = ["table", "attack", "alpha\\_q", "winner in the paper", "winner here", "the paper's is behind by"]
    body = [
        [
            markdown(winner.title),
            markdown(winner.attack),
            _DASH if winner.alpha_q is None else f"{winner.alpha_q:g}",
            markdown(", ".join(winner.published)),
            markdown(", ".join(winner.ours)),
            "same" if winner.agrees else f"{winner.behind:.2f}",
        ]
        for winner in found
    ]
    return f"{grid_markdown(heads, lines)}\n{grid_markdown(each, body)}"


def winners_csv(found: Iterable[Winner]) -> str:
    """Return the winners as CSV; several that tie are separated by a semicolon."""
    lines = [
        [w.table, w.attack, _number(w.alpha_q, "g"), ";".join(w.published), ";".join(w.ours), w.agrees, w.behind]
        for w in found
    ]
    return _csv(["table", "attack", "alpha_q", "published", "ours", "agrees", "behind"], lines)


def statistics_markdown(lines: Iterable[StatisticsLine]) -> str:
    """Return Table 1 as Markdown: what the paper printed, and our number of clients."""
    heads = ["data set", "classes", "train", "test", "clients", "clients here", "mean quantity", "std", "max"]
    body = []
    for line in lines:
        ours = ", ".join(f"{count:,}" for count in line.num_clients) or _DASH
        paper = line.published
        if paper is None:
            body.append([markdown(printed(line.dataset)), *[_DASH] * 4, ours, *[_DASH] * 3])
            continue
        counts = (f"{count:,}" for count in (paper.num_classes, paper.num_train, paper.num_test, paper.num_clients))
        spread = (f"{paper.mean_quantity:.2f}", f"{paper.std_quantity:.2f}", f"{paper.max_quantity:,}")
        body.append([markdown(printed(line.dataset)), *counts, ours, *spread])
    return grid_markdown(heads, body)


def signed(value: float, digits: int = 2) -> str:
    """Return a difference with its sign."""
    return f"{value:+.{digits}f}".replace("-", _MINUS)


def _best(table: Table) -> list[float | None]:
    """Return the highest mean of each column, to the digits shown; None where there is nothing to be better than."""
    means = (
        [entry.mean for row in table.rows if (entry := row.entries[place]) and entry.mean is not None]
        for place in range(len(table.columns))
    )
    return [round(max(found), 2) if len(found) > 1 else None for found in means]


def _is_best(entry: Entry, best: float | None) -> bool:
    return entry.mean is not None and round(entry.mean, 2) == best


def _is_compared(table: Table) -> bool:
    return any(entry and entry.published is not None for row in table.rows for entry in row.entries)


def _head(column: Column) -> str:
    quantity = "" if column.alpha_q is None else f", alpha\\_q {column.alpha_q:g}"
    return f"{markdown(column.attack_label)}{quantity}"


def _markdown(entry: Entry | None, row: Row, best: float | None, runs: Runs) -> str:
    if entry is None:
        return _DASH
    text = _ours(entry, runs, bold=lambda figure: f"**{figure}**" if _is_best(entry, best) else figure)
    if entry.published is not None:
        difference = "" if entry.difference is None else f", {signed(entry.difference)}"
        text += f" ({entry.published:.2f}{difference})"
    varies = len({other.rule for other in row.entries if other}) > 1
    return f"{text} {markdown(printed(entry.rule))}" if varies or printed(entry.rule) != row.label else text


def _ours(entry: Entry, runs: Runs, *, bold: Callable[[str], str]) -> str:
    if entry.mean is None:
        return runs.status(entry)
    spread = "" if entry.std is None else f" ± {entry.std:.2f}"
    done = runs.num_done(entry)
    part = "" if done == len(entry.runs) else f" [{done} of {len(entry.runs)} seeds]"
    return f"{bold(f'{entry.mean:.2f}')}{spread}{part}"


def _latex(entry: Entry | None, best: float | None, runs: Runs) -> str:
    if entry is None:
        return "--"
    if entry.mean is None:
        text = rf"\textit{{{runs.status(entry)}}}"
    else:
        figure = f"{entry.mean:.2f}"
        text = rf"\textbf{{{figure}}}" if _is_best(entry, best) else figure
        if entry.std is not None:
            text += rf"{{\scriptsize\,$\pm$\,{entry.std:.2f}}}"
        if (done := runs.num_done(entry)) < len(entry.runs):
            text += rf"{{\scriptsize\ {done}/{len(entry.runs)} seeds}}"
    return text if entry.published is None else rf"{text} {{\scriptsize({entry.published:.2f})}}"


def _latex_quantity(column: Column) -> str:
    return "" if column.alpha_q is None else rf"$\alpha_q={column.alpha_q:g}$"


def _latex_reading(table: Table) -> str:
    return " In parentheses: published." if _is_compared(table) else ""


def _number(value: float | None, shape: str = ".4f") -> str:
    return "" if value is None else format(value, shape)


def _csv(heads: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows(lines)
    return text.getvalue()
