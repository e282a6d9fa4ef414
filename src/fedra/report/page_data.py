"""What the page draws on demand, as compact JSON: the runs behind each entry, with texts and lists stored once."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from fedra.experiments import Results
from fedra.experiments.paper import BEST_IGNORANT
from fedra.report.colours import rule_colour
from fedra.report.model import Entry, Row, Table
from fedra.report.names import printed
from fedra.report.page_command import repeating_command
from fedra.report.page_tables import is_best_of_several

_FIGURES = (
    "final_accuracy",
    "best_accuracy",
    "filtering_precision",
    "filtering_recall",
    "mean_abs_error_malicious",
)
_NO_CURVE = pd.DataFrame(columns=["round", "accuracy", "caught", "missed", "wrongly_rejected", "estimate_error"])


def page_data(results: Results, tables: Sequence[Table]) -> dict[str, Any]:
    """Return tables and the runs they show; an entry names its runs, and a run its texts, by index."""
    names = list(dict.fromkeys(run for table in tables for entry in _entries(table) for run in entry.runs))
    known = {line["run"]: line for line in results.cells.drop_duplicates("run").to_dict("records")}
    curves = dict(iter(results.curves.groupby("run", observed=True)))
    scores = dict(iter(results.scores.groupby("run", observed=True)))
    bins, pool = _bins(results.scores), _Pool()
    keys = sorted({key for name in names if name in known for key in _config(known[name])})
    runs = [
        {
            "name": name,
            **(_run(known[name], keys, pool) if name in known else {"status": "missing"}),
            **_curve(curves.get(name, _NO_CURVE), pool),
            **({"scores": _counts(scores[name], bins)} if name in scores else {}),
        }
        for name in names
    ]
    place = {name: index for index, name in enumerate(names)}
    return {
        "tables": [_table(table, place) for table in tables],
        "runs": runs,
        "keys": keys,
        "pool": pool.values,
        "bins": bins,
    }


def embedded_json(value: Any) -> str:
    """Return JSON that may stand between script tags whatever the texts in it say."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


class _Pool:
    """Values that are stored once and named by index."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._places: dict[Hashable, int] = {}

    def place(self, value: Any, key: Hashable) -> int:
        if key not in self._places:
            self._places[key] = len(self.values)
            self.values.append(value)
        return self._places[key]


def _entries(table: Table) -> Iterable[Entry]:
    return (entry for row in table.rows for entry in row.entries if entry is not None)


def _table(table: Table, place: Mapping[str, int]) -> dict[str, Any]:
    return {
        "title": table.title,
        "caption": table.caption,
        "columns": [[column.attack_label, column.alpha_q] for column in table.columns],
        "rows": [
            {
                "label": row.label,
                "family": row.family,
                "colour": _colour(row),
                "entries": [entry and _entry(entry, place) for entry in row.entries],
            }
            for row in table.rows
        ],
    }


def _colour(row: Row) -> str:
    rules = [entry.rule for entry in row.entries if entry is not None]
    return rule_colour(BEST_IGNORANT if is_best_of_several(row) or not rules else rules[0])


def _entry(entry: Entry, place: Mapping[str, int]) -> list[Any]:
    figures = [_rounded(value, 4) for value in (entry.mean, entry.std, entry.published)]
    return [*figures, printed(entry.rule), [place[run] for run in entry.runs]]


def _run(cell: Mapping[Hashable, Any], keys: Sequence[str], pool: _Pool) -> dict[str, Any]:
    config = _config(cell)
    texts = [config[key] if isinstance(config.get(key), str) else json.dumps(config.get(key)) for key in keys]
    return {
        "status": _text(cell["status"]),
        "error": _text(cell["error"]),
        "seed": None if pd.isna(cell["seed"]) else int(cell["seed"]),
        "figures": [_rounded(cell.get(name), 4) for name in _FIGURES],
        "config": [pool.place(text, text) for text in texts],
        "command": repeating_command(config) if config else "",
    }


def _config(cell: Mapping[Hashable, Any]) -> dict[str, Any]:
    text = _text(cell["config"])
    values = json.loads(text) if text else {}
    return {key: value for key, value in values.items() if key != "data_dir"}


def _curve(lines: pd.DataFrame, pool: _Pool) -> dict[str, Any]:
    ordered = lines.sort_values("round")
    rounds = [int(number) for number in ordered["round"]]
    caught = ordered["caught"]
    return {
        "rounds": pool.place(rounds, tuple(rounds)),
        "accuracy": [_rounded(value, 2) for value in ordered["accuracy"]],
        "precision": _shares(caught, ordered["wrongly_rejected"]),
        "recall": _shares(caught, ordered["missed"]),
        "estimate": [_rounded(value, 2) for value in ordered["estimate_error"]],
    }


def _shares(part: pd.Series[Any], rest: pd.Series[Any]) -> list[float | None]:
    pairs = zip(part, rest, strict=True)
    return [None if pd.isna(a + b) or a + b == 0 else _rounded(a / (a + b), 3) for a, b in pairs]


def _bins(scores: pd.DataFrame) -> list[tuple[float, float]]:
    """Return all bins that some run has filled, from low to high."""
    edges = scores[["low", "high"]].drop_duplicates().sort_values("low").round(4)
    return list(zip(edges["low"].tolist(), edges["high"].tolist(), strict=True))


def _counts(lines: pd.DataFrame, bins: Sequence[tuple[float, float]]) -> list[list[int]]:
    """Return how many benign and how many malicious scores fell into each bin."""
    place = {low: index for index, (low, _) in enumerate(bins)}
    counts = [[0] * len(bins), [0] * len(bins)]
    for malicious, low, count in zip(lines["malicious"], lines["low"].round(4), lines["count"], strict=True):
        counts[bool(malicious)][place[low]] += int(count)
    return counts


def _rounded(value: Any, digits: int) -> float | None:
    if value is None or pd.isna(value) or not math.isfinite(value):
        return None
    return round(float(value), digits)


def _text(value: Any) -> str:
    return "" if pd.isna(value) else str(value)
