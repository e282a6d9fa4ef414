"""Tables as LaTeX."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise

from fedra.report.model import Column, Entry, Table
from fedra.untrusted import one_line

_NUMBER = re.compile(r"^(?:Table|Figure) \d+: ")
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "{''}",
    "`": r"\`{}",
    "\N{MINUS SIGN}": "$-$",
    "\N{PLUS-MINUS SIGN}": r"$\pm$",
}


def escaped(text: str) -> str:
    """Return a text as LaTeX that prints it letter for letter."""
    # A bracket after a line break would be taken for its length.
    return "".join(_SPECIAL.get(c, c) for c in one_line(text)).replace("[", "{[}").replace("]", "{]}")


def table_latex(table: Table) -> str:
    r"""Return a table as LaTeX that needs \usepackage{booktabs} and nothing else."""
    groups = [(label, len(list(group))) for label, group in groupby(c.attack_label for c in table.columns)]
    ends = [1]
    for _, width in groups:
        ends.append(ends[-1] + width)
    heads = [" & ".join(["", *(rf"\multicolumn{{{width}}}{{c}}{{{escaped(label)}}}" for label, width in groups)])]
    rules = "".join(rf"\cmidrule(lr){{{begin + 1}-{end}}}" for begin, end in pairwise(ends))
    if any(column.alpha_q is not None for column in table.columns):
        heads.append(" & ".join(["", *(_quantity(column) for column in table.columns)]))
    body = [
        " & ".join(
            [
                escaped(row.label),
                *(
                    r"\textit{refuses}" if entry is None and place in row.refusals else _entry(entry, top)
                    for place, (entry, top) in enumerate(zip(row.entries, best, strict=True))
                ),
            ]
        )
        for row, best in zip(table.rows, table.best, strict=True)
    ]
    place = "" if table.number is None else f" in Table {table.number}"
    reading = f" In parentheses: published{place}." if table.compared else ""
    lines = [
        r"\begin{table}[t]",
        r"\centering",
        r"\small",
        # LaTeX puts "Table" and a number of its own before it.
        rf"\caption{{{escaped(_NUMBER.sub('', table.title))}. {escaped(table.caption)}{reading}}}",
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


def lines_latex(heads: Sequence[str], lines: Iterable[Sequence[str]], *, caption: str, key: str) -> str:
    """Return a table of texts as LaTeX, the first column to the left and the others to the right."""
    body = [
        r"\begin{table}[t]",
        r"\centering",
        r"\small",
        rf"\caption{{{escaped(caption)}}}",
        rf"\label{{tab:{key}}}",
        rf"\begin{{tabular}}{{l{'r' * (len(heads) - 1)}}}",
        r"\toprule",
        rf"{' & '.join(map(escaped, heads))} \\",
        r"\midrule",
        *(rf"{' & '.join(map(escaped, line))} \\" for line in lines),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(body) + "\n"


def _entry(entry: Entry | None, best: bool) -> str:
    if entry is None:
        return "--"
    if entry.mean is None:
        text = rf"\textit{{{entry.reason}}}"
    else:
        text = rf"\textbf{{{entry.mean:.2f}}}" if best else f"{entry.mean:.2f}"
        if entry.std is not None:
            text += rf"{{\scriptsize\,$\pm$\,{entry.std:.2f}}}"
        if entry.num_done < len(entry.runs):
            text += rf"{{\scriptsize\ {entry.num_done}/{len(entry.runs)} seeds}}"
    return text if entry.published is None else rf"{text} {{\scriptsize({entry.published:.2f})}}"


def _quantity(column: Column) -> str:
    return "" if column.alpha_q is None else rf"$\alpha_q={column.alpha_q:g}$"
