"""What the page of one run shows, as values."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pandas as pd

from fedra.experiments.results import SCORE_EDGES
from fedra.report.appearance import COLOURS
from fedra.report.figures.one_run import SERIES
from fedra.report.formats.markdown import DASH
from fedra.report.model.one_run import OneRun, explanation, facts, rejection_text
from fedra.report.model.outcomes import wrongly_rejected
from fedra.report.page.embedded import rounded
from fedra.report.page.views import Tile
from fedra.report.reference import TextTable
from fedra.report.repeating import repeating_command
from fedra.untrusted import clipped

_MOST_CLIENTS = 100
_MOST_ROUNDS = 1_000
_MOST_REMARKS = 100
_DASHES = {"-": None, "--": "7 3", ":": "2 3"}
_ROUND_HEADS = (
    *("round", "clients", "malicious", "estimated number of malicious", "kept"),
    *("malicious rejected", "malicious kept", "honest wrongly rejected", "accuracy"),
)
_CLIENT_HEADS = ("client", "malicious", "rounds", "rejected", "data", "most claimed", "last reason")


def run_context(run: OneRun) -> dict[str, Any]:
    """Return what the template shows of a run."""
    measured = run.rounds["accuracy"].notna()
    listed = run.rounds if len(run.rounds) <= _MOST_ROUNDS else run.rounds[measured]
    clients = run.rejected_clients
    rejected = clients[clients["rejected"] > 0]
    return {
        "tiles": [Tile(figure=text, text=name, kind=text if name == "status" else "") for name, text in facts(run)],
        "error": run.outcome.error,
        "explanation": explanation(run),
        "rejection_text": rejection_text(run),
        "measured": not run.measured.empty,
        "clients": TextTable(
            label="Whom the rule rejected",
            heads=_CLIENT_HEADS,
            lines=[_client(line) for line in rejected.head(_MOST_CLIENTS).itertuples()],
            numbers=frozenset({2, 3, 4, 5}),
        ),
        "more_clients": _more(len(rejected), len(clients)),
        "rounds": TextTable(
            label="Round by round",
            heads=_ROUND_HEADS,
            lines=_rounds(listed.tail(_MOST_ROUNDS)),
            numbers=frozenset(range(1, len(_ROUND_HEADS))),
        ),
        "rounds_left_out": ""
        if listed is run.rounds
        else "Rounds in which accuracy was measured; tables/rounds.csv has all of them.",
        "remarks": TextTable(label="Warnings and notes", heads=("round", "kind", "what"), lines=_remarks(run.rounds)),
        "command": repeating_command(run.outcome.config),
        "settings": TextTable(
            label="Configuration",
            heads=("setting", "value"),
            lines=[[name, _setting(value)] for name, value in sorted(run.outcome.config.items()) if value != {}],
        ),
    }


def run_data(run: OneRun, published: float | None) -> dict[str, Any]:
    """Return what the page of a run draws."""
    size, points = run.per_round
    numbers = [int(number) for number in points["round"]]
    means = "" if size == 1 else f", mean of {size} rounds"
    return {
        "run": {
            "accuracy": {
                "rounds": [int(number) for number in run.measured["round"]],
                "values": [rounded(value, 2) for value in run.measured["accuracy"]],
            },
            "published": published,
            "series": [
                {
                    "name": f"{text}{means}",
                    "colour": colour,
                    "dash": _DASHES[dash],
                    "rounds": numbers,
                    "values": [rounded(value, 2) for value in points[name]],
                }
                for name, (text, colour, dash) in SERIES.items()
            ],
            "scores": [counts.tolist() for counts in run.scores.values()] or None,
            "bins": [[round(float(low), 4), round(float(high), 4)] for low, high in pairwise(SCORE_EDGES)],
        },
        "colours": COLOURS,
    }


def _client(line: Any) -> list[str]:
    return [
        str(line.client),
        "malicious" if line.malicious else "honest",
        f"{line.rounds:,}",
        f"{line.rejected:,}",
        f"{line.true_quantity:,}",
        f"{line.claimed_quantity:,.6g}",
        clipped(line.reason),
    ]


def _more(rejected: int, clients: int) -> str:
    if rejected > _MOST_CLIENTS:
        return f"{rejected - _MOST_CLIENTS:,} more clients were rejected at least once: see tables/clients.csv."
    never = clients - rejected
    return f"{never:,} of {clients:,} clients that took part were never rejected." if clients else ""


def _rounds(rounds: pd.DataFrame) -> list[list[str]]:
    columns = [
        rounds["round"] + 1,
        *(rounds[name] for name in ("num_sampled", "num_malicious", "estimated_malicious", "num_kept")),
        *(rounds["caught"], rounds["missed"], wrongly_rejected(rounds)),
    ]
    texts = [[DASH if pd.isna(value) else str(int(value)) for value in column] for column in columns]
    accuracies = [DASH if pd.isna(value) else f"{value:.2f}" for value in rounds["accuracy"]]
    return [list(line) for line in zip(*texts, accuracies, strict=True)]


def _remarks(rounds: pd.DataFrame) -> list[list[str]]:
    found = [
        [str(int(number) + 1), kind, clipped(text)]
        for number, note, warnings in zip(rounds["round"], rounds["note"], rounds["warnings"], strict=True)
        for kind, text in (("no update", note), ("warning", warnings))
        if text
    ]
    if len(found) > _MOST_REMARKS:
        return [*found[:_MOST_REMARKS], ["", "", f"and {len(found) - _MOST_REMARKS:,} more, in tables/rounds.csv"]]
    return found


def _setting(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)
