"""The figures of a finished run, read back: all there and each within its range, or an error that names the file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from fedra.checks import is_number, is_whole
from fedra.untrusted import MEBIBYTE, check_depth, clipped, parsed_json, read_bounded

_LARGEST_FILE = MEBIBYTE

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


def read_result(path: Path) -> dict[str, Any] | None:
    """Return the result of a run, None where there is none."""
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
        if problem := figure_problem(result, checks):
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
