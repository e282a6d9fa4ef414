"""What came of a run: its figures, made when it is finished, and read back with care."""

from __future__ import annotations

import hashlib
import platform
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fedra import __version__
from fedra.checks import is_number, is_whole
from fedra.simulation.measures import is_class_text, worst_class
from fedra.simulation.round_step import ServerState, Simulation
from fedra.untrusted import MEBIBYTE, check_depth, clipped, parsed_json, read_bounded

_LARGEST_FILE = MEBIBYTE


@dataclass(frozen=True, eq=False, kw_only=True)
class SimulationResult:
    """A finished run: its figures, and its records as data frames."""

    summary: dict[str, Any]
    rounds: pd.DataFrame
    clients: pd.DataFrame

    @property
    def final_accuracy(self) -> float:
        """Test accuracy after the last round, in percent."""
        return float(self.summary["final_accuracy"])

    @property
    def best_accuracy(self) -> float:
        """The best test accuracy that was measured, in percent."""
        return float(self.summary["best_accuracy"])


def summary(rounds: pd.DataFrame) -> dict[str, Any]:
    """Return accuracy, and how well malicious clients were separated from honest ones, over a whole run."""
    measured = rounds.dropna(subset=["accuracy"])
    accuracies, numbers = measured["accuracy"].to_numpy(), measured["round"].to_numpy()
    best = int(np.argmax(accuracies)) if len(accuracies) else None
    malicious, caught = int(rounds["num_malicious"].sum()), int(rounds["caught"].sum())
    rejected = caught + int(rounds["wrongly_rejected"].sum())
    errors = (rounds["estimated_malicious"] - rounds["num_malicious"]).abs().dropna()
    successes = rounds["attack_success"].dropna().to_numpy()
    areas = rounds["auc"].dropna().to_numpy()
    classes = [text for text in rounds["class_accuracy"] if text]
    return {
        "final_accuracy": None if best is None else float(accuracies[-1]),
        "best_accuracy": None if best is None else float(accuracies[best]),
        "best_round": None if best is None else int(numbers[best]),
        "attack_success": float(successes[-1]) if len(successes) else None,
        "auc": float(areas[-1]) if len(areas) else None,
        "class_accuracy": classes[-1] if classes else None,
        "worst_class_accuracy": worst_class(classes[-1]) if classes else None,
        "filtering_precision": caught / rejected if rejected else None,
        "filtering_recall": caught / malicious if malicious else None,
        "mean_abs_error_malicious": float(errors.mean()) if len(errors) else None,
        "rounds_without_update": int((rounds["note"] != "").sum()),
    }


def make_result(simulation: Simulation, state: ServerState, rounds: pd.DataFrame, seconds: float) -> dict[str, Any]:
    """Return all figures of a run that is done.

    Args:
        simulation: what was run.
        state: the state after the last round.
        rounds: the record of all rounds.
        seconds: how long the rounds took.
    """
    config = simulation.config
    return {
        **summary(rounds),
        "rounds": config.rounds,
        "seconds": round(seconds, 3),
        "rounds_per_second": round(config.rounds / seconds, 3) if seconds > 0 else None,
        "seed": config.seed,
        "num_clients": simulation.federation.num_clients,
        "num_malicious_clients": int(simulation.federation.malicious.sum()),
        "num_parameters": len(state.weights),
        "weights_sha256": hashlib.sha256(state.weights.tobytes()).hexdigest(),
        "config": {key: value for key, value in config.to_dict().items() if value is not None},
        "versions": {
            "fedra": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "numba", "torch")},
        },
    }


_percent = partial(is_number, least=0, most=100)
_share = partial(is_number, least=0, most=1)
_amount = partial(is_number, least=0)


def _or_none(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or check(value)


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[0-9a-f]{64}", value) is not None


FIGURE_CHECKS: Mapping[str, Callable[[Any], bool]] = {
    "final_accuracy": _or_none(_percent),
    "best_accuracy": _or_none(_percent),
    "best_round": _or_none(is_whole),
    "filtering_precision": _or_none(_share),
    "filtering_recall": _or_none(_share),
    "mean_abs_error_malicious": _or_none(_amount),
    "rounds_without_update": is_whole,
    "rounds": partial(is_whole, least=1),
    "seconds": _amount,
    "num_clients": is_whole,
    "num_malicious_clients": is_whole,
    "num_parameters": is_whole,
    "weights_sha256": _is_digest,
}

# Of figures that earlier versions did not write.
ADDED_FIGURE_CHECKS: Mapping[str, Callable[[Any], bool]] = {
    "attack_success": _or_none(_percent),
    "auc": _or_none(_share),
    "class_accuracy": _or_none(is_class_text),
    "worst_class_accuracy": _or_none(_percent),
}


def read_result(path: Path) -> dict[str, Any] | None:
    """Return the result of a run, None where there is none; what is missing or out of range is an error."""
    try:
        content = read_bounded(path, _LARGEST_FILE)
    except FileNotFoundError:
        return None
    try:
        result = parsed_json(content)
        check_depth(result)
        if not isinstance(result, dict):
            raise ValueError(f"it is {type(result).__name__}, not a table of figures")
        checks = {**FIGURE_CHECKS, "rounds_per_second": _or_none(_amount), "seed": is_whole}
        added = {name: check for name, check in ADDED_FIGURE_CHECKS.items() if name in result}
        if problem := figure_problem(result, {**checks, **added}):
            raise ValueError(problem)
    except ValueError as error:
        raise ValueError(
            f"{path} cannot be read ({clipped(error)}); put it back, or remove {path.parent} to run it again"
        ) from error
    return result


def figure_problem(figures: Mapping[str, Any], checks: Mapping[str, Callable[[Any], bool]] = FIGURE_CHECKS) -> str:
    """Return what is wrong with a run's figures, empty where nothing is."""
    for name, check in checks.items():
        if name not in figures:
            return f"{name} is missing"
        if not check(figures[name]):
            return f"{name} is {clipped(figures[name], 60)}"
    return ""
