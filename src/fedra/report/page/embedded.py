"""What the page draws on demand, as compact JSON: the runs behind each entry, with texts and lists stored once."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from fedra.report.appearance import COLOURS, rule_styles
from fedra.report.model import Entry, Table
from fedra.report.model.outcomes import FIGURES, UNKNOWN_SEED, WRONGLY_REJECTED, Outcome, ReportData, wrongly_rejected
from fedra.report.repeating import repeating_command

_HIDDEN = ("data_dir",)
_NO_CURVE = pd.DataFrame(columns=["round", "accuracy", "caught", "missed", WRONGLY_REJECTED, "estimate_error"])


def page_data(data: ReportData, tables: Sequence[Table]) -> dict[str, Any]:
    """Return tables and the runs they show; an entry names its runs, and a run its texts, by index."""
    names = list(dict.fromkeys(run for table in tables for entry in _entries(table) for run in entry.runs))
    bins, pool = _bins(data.results.scores), _Pool()
    keys = sorted({key for name in names if name in data.runs for key in _config(data.runs[name])})
    runs = [
        {
            "name": name,
            **(_run(data.runs[name], keys, pool) if name in data.runs else {"status": "missing"}),
            **_curve(data.curves.get(name, _NO_CURVE), pool),
            **({"scores": _counts(data.scores[name], bins)} if name in data.scores else {}),
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
        "colours": COLOURS,
    }


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
    styles = rule_styles((row.rule, row.own) for row in table.rows)
    return {
        "title": table.title,
        "caption": table.caption,
        **({"compared": True} if table.compared else {}),
        "columns": [[column.attack_label, column.alpha_q] for column in table.columns],
        "rows": [
            {
                "label": row.label,
                "family": row.family,
                "colour": style.colour,
                **({"own": True} if row.own else {}),
                **({"faint": True} if style.faint else {}),
                "entries": [entry and _entry(entry, place) for entry in row.entries],
            }
            for row, style in zip(table.rows, styles, strict=True)
        ],
    }


def _entry(entry: Entry, place: Mapping[str, int]) -> list[Any]:
    figures = [rounded(value, 4) for value in (entry.mean, entry.std, entry.published)]
    return [*figures, entry.by, [place[run] for run in entry.runs]]


def _run(run: Outcome, keys: Sequence[str], pool: _Pool) -> dict[str, Any]:
    config = _config(run)
    texts = [config[key] if isinstance(config.get(key), str) else json.dumps(config.get(key)) for key in keys]
    return {
        "status": run.status,
        "error": run.error,
        "seed": None if run.seed == UNKNOWN_SEED else run.seed,
        "figures": [rounded(run.figures.get(name), 4) for name in FIGURES],
        "config": [pool.place(text, text) for text in texts],
        "command": repeating_command(config) if config else "",
    }


def _config(run: Outcome) -> dict[str, Any]:
    return {key: value for key, value in run.config.items() if key not in _HIDDEN}


def _curve(lines: pd.DataFrame, pool: _Pool) -> dict[str, Any]:
    ordered = lines.sort_values("round")
    rounds = [int(number) for number in ordered["round"]]
    caught = ordered["caught"]
    return {
        "rounds": pool.place(rounds, tuple(rounds)),
        "accuracy": [rounded(value, 2) for value in ordered["accuracy"]],
        "precision": _shares(caught, wrongly_rejected(ordered)),
        "recall": _shares(caught, ordered["missed"]),
        "estimate": [rounded(value, 2) for value in ordered["estimate_error"]],
    }


def _shares(part: pd.Series[Any], rest: pd.Series[Any]) -> list[float | None]:
    pairs = zip(part, rest, strict=True)
    return [None if pd.isna(a + b) or a + b == 0 else rounded(a / (a + b), 3) for a, b in pairs]


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


def rounded(value: Any, digits: int) -> float | None:
    """Return a figure as the page has it, None where there is none."""
    if value is None or pd.isna(value) or not math.isfinite(value):
        return None
    return round(float(value), digits)
