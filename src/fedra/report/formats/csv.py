"""Tables as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from fedra.report.model import Table
from fedra.report.model.outcomes import MEASURES

_COLUMNS = (
    *("table", "number", "dataset", "partition", "setting", "row", "family", "rule", "attack", "alpha_q"),
    *("mean", "std", "seeds", "published", "difference", "status", *MEASURES, "runs"),
)


def table_csv(tables: Iterable[Table]) -> str:
    """Return tables as one CSV, a line for each entry."""
    lines = [
        [
            *(table.key, table.number, table.dataset, table.partition, table.setting, row.label, row.family),
            *(entry.rule, column.attack, number(column.alpha_q, "g")),
            *(number(entry.mean), number(entry.std), entry.num_done),
            *(number(entry.published, ".2f"), number(entry.difference), entry.status),
            *(number(entry.measures.get(measure)) for measure in MEASURES),
            " ".join(entry.runs),
        ]
        for table in tables
        for row in table.rows
        for column, entry in zip(table.columns, row.entries, strict=True)
        if entry is not None
    ]
    return lines_csv(_COLUMNS, lines)


def lines_csv(heads: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """Return lines of values as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows(lines)
    return text.getvalue()


def number(value: float | None, shape: str = ".4f") -> str:
    """Return a number as it stands in a file, empty where there is none."""
    return "" if value is None else format(value, shape)
