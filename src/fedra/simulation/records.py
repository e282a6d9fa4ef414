"""The records of a run as data frames: a line for each round, and for each client in each round."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from fedra.simulation.rounds import RoundOutcome

_ROUND_TYPES = {
    "round": "int64",
    "num_sampled": "int64",
    "num_malicious": "int64",
    "estimated_malicious": "Int64",
    "num_kept": "int64",
    "caught": "int64",
    "missed": "int64",
    "wronged": "int64",
    "accuracy": "float64",
    "note": "str",
    "warnings": "str",
}
_CLIENT_TYPES = {
    "round": "int64",
    "client": "int64",
    "malicious": "bool",
    "true_quantity": "int64",
    "claimed_quantity": "float64",
    "implied_quantity": "float64",
    "score": "float64",
    "kept": "bool",
    "weight": "float64",
    "reason": "str",
}
RECORD_TYPES = {"rounds": _ROUND_TYPES, "clients": _CLIENT_TYPES}


def round_frame(outcomes: Iterable[RoundOutcome]) -> pd.DataFrame:
    """Return one line for each round."""
    lines = [
        {
            "round": outcome.round,
            "num_sampled": len(outcome.clients),
            "num_malicious": int(outcome.malicious.sum()),
            "estimated_malicious": outcome.verdict.num_malicious,
            "num_kept": int(outcome.verdict.kept.sum()),
            "caught": outcome.caught,
            "missed": outcome.missed,
            "wronged": outcome.wronged,
            "accuracy": np.nan if outcome.accuracy is None else outcome.accuracy,
            "note": outcome.verdict.note,
            "warnings": "; ".join(outcome.verdict.warnings),
        }
        for outcome in outcomes
    ]
    return _typed(pd.DataFrame(lines, columns=list(_ROUND_TYPES)), _ROUND_TYPES)


def client_frame(outcomes: Iterable[RoundOutcome]) -> pd.DataFrame:
    """Return one line for each client in each round."""
    frames = [
        pd.DataFrame(
            {
                "round": outcome.round,
                "client": outcome.clients,
                "malicious": outcome.malicious,
                "true_quantity": outcome.true_quantities,
                "claimed_quantity": outcome.claims,
                "implied_quantity": _or_nan(outcome.verdict.implied_quantities),
                "score": _or_nan(outcome.verdict.scores),
                "kept": outcome.verdict.kept,
                "weight": _or_nan(outcome.verdict.weights),
                "reason": outcome.verdict.reasons,
            }
        )
        for outcome in outcomes
    ]
    return _typed(pd.concat(frames) if frames else pd.DataFrame(columns=list(_CLIENT_TYPES)), _CLIENT_TYPES)


def _or_nan(values: Any) -> Any:
    return np.nan if values is None else values


def _typed(frame: pd.DataFrame, types: dict[str, str]) -> pd.DataFrame:
    return frame.astype(types).reset_index(drop=True)


def summary(rounds: pd.DataFrame) -> dict[str, Any]:
    """Return accuracy, and how well malicious clients were told from honest ones, over a whole run."""
    measured = rounds.dropna(subset=["accuracy"])
    accuracies, numbers = measured["accuracy"].to_numpy(), measured["round"].to_numpy()
    best = int(np.argmax(accuracies)) if len(accuracies) else None
    malicious, caught = int(rounds["num_malicious"].sum()), int(rounds["caught"].sum())
    dropped = caught + int(rounds["wronged"].sum())
    errors = (rounds["estimated_malicious"] - rounds["num_malicious"]).abs().dropna()
    return {
        "final_accuracy": None if best is None else float(accuracies[-1]),
        "best_accuracy": None if best is None else float(accuracies[best]),
        "best_round": None if best is None else int(numbers[best]),
        "filtering_precision": caught / dropped if dropped else None,
        "filtering_recall": caught / malicious if malicious else None,
        "mean_abs_error_malicious": float(errors.mean()) if len(errors) else None,
        "rounds_without_update": int((rounds["note"] != "").sum()),
    }
