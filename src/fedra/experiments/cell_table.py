"""The lines of the table of cells, from files that may be damaged: what cannot be read costs its own line."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from fedra.checks import is_number, is_whole
from fedra.experiments.treatment import TREATMENT_CHECKS, TREATMENT_TYPES
from fedra.simulation import SimulationConfig
from fedra.simulation.run_result import ADDED_FIGURE_CHECKS, FIGURE_CHECKS, figure_problem
from fedra.untrusted import (
    MEBIBYTE,
    check_depth,
    clipped,
    encodable,
    is_file_name,
    parsed_json,
    read_bounded,
)

CELL_TYPES = {
    "grid": "string",
    "dataset": "string",
    "partition": "string",
    "setting": "string",
    "rule": "string",
    "attack": "string",
    "alpha_q": "float64",
    "seed": "Int64",
    "run": "string",
    "status": "string",
    "error": "string",
    "config": "string",
}
FIGURE_TYPES = {
    "final_accuracy": "float64",
    "best_accuracy": "float64",
    "best_round": "Int64",
    "attack_success": "float64",
    "auc": "float64",
    "class_accuracy": "string",
    "worst_class_accuracy": "float64",
    "filtering_precision": "float64",
    "filtering_recall": "float64",
    "mean_abs_error_malicious": "float64",
    "rounds_without_update": "Int64",
    "rounds": "Int64",
    "seconds": "float64",
    "num_clients": "Int64",
    "num_malicious_clients": "Int64",
    "num_parameters": "Int64",
    "weights_sha256": "string",
}
_CHECKS = {**FIGURE_CHECKS, **ADDED_FIGURE_CHECKS, **TREATMENT_CHECKS}
STATES = ("done", "failed", "unfinished", "missing")

UNREADABLE = "unreadable"
_LABELS = ("dataset", "partition", "setting", "rule", "attack")
_LARGEST_GRID = 256 * MEBIBYTE
_MOST_CELLS = 100_000
_LONGEST_LABEL = 300
_LONGEST_CONFIG = 65_536
_LONGEST_ERROR = 2_000


def _or_none(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or check(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


# By the annotation of a setting. The classes that a configuration names need not be here, so that it is not made.
_KINDS: Mapping[str, Callable[[Any], bool]] = {
    "int": is_whole,
    "int | None": _or_none(is_whole),
    "float": is_number,
    "float | None": _or_none(is_number),
    "Mapping[str, Any]": lambda value: isinstance(value, dict),
}
_SETTINGS = {known.name: _KINDS.get(str(known.type), _or_none(_is_text)) for known in fields(SimulationConfig)}


def grid_lines(file: Path) -> list[dict[str, Any]]:
    """Return a line for each cell of a grid's file; one that cannot be read has a status and an error already.

    Raises:
        ValueError: where the file is no list of cells.
    """
    try:
        cells = parsed_json(read_bounded(file, _LARGEST_GRID))
        if not isinstance(cells, list) or len(cells) > _MOST_CELLS:
            raise ValueError(f"it is no list of at most {_MOST_CELLS:,} cells")
    except (ValueError, OSError) as error:
        raise ValueError(
            f"{file} cannot be read ({clipped(error)}); call fedra grid or fedra paper again to write it again"
        ) from error
    return [_line(encodable(file.stem), number, cell) for number, cell in enumerate(cells, start=1)]


def _line(grid: str, number: int, cell: Any) -> dict[str, Any]:
    line = dict(cell) if isinstance(cell, dict) else {}
    if problem := cell_problem(line):
        return unreadable_line(grid, number, line, problem)
    settings = {key: value for key, value in line["config"].items() if value is not None}
    wanted = {key: line[key] for key in (*_LABELS, "alpha_q", "seed", "run")}
    return {"grid": grid, **wanted, "config": json.dumps(settings, sort_keys=True)}


def cell_problem(cell: Mapping[str, Any]) -> str:
    """Return what is wrong with a cell's labels, run and configuration, empty where nothing is."""
    for name in _LABELS:
        if not _is_label(cell.get(name)):
            return f"{name} is {_described(cell, name)}"
    if not is_whole(cell.get("seed")):
        return f"seed is {_described(cell, 'seed')}"
    if "alpha_q" not in cell or not _or_none(is_number)(cell["alpha_q"]):
        return f"alpha_q is {_described(cell, 'alpha_q')}"
    if not is_file_name(cell.get("run")):
        return f"run is {_described(cell, 'run')}, which names no folder in runs/"
    return _config_problem(cell.get("config"))


def unreadable_line(grid: str, number: int, cell: Mapping[str, Any], problem: str) -> dict[str, Any]:
    """Return the line of a cell that cannot be read: what of its labels can be, and the problem."""
    labels = {name: cell[name] if _is_label(cell.get(name)) else UNREADABLE for name in _LABELS}
    alpha_q, seed = cell.get("alpha_q"), cell.get("seed")
    return {
        "grid": grid,
        **labels,
        "alpha_q": alpha_q if is_number(alpha_q) else None,
        "seed": seed if is_whole(seed) else None,
        # No run can have this name, for the blanks in it.
        "run": f"cell {number} of {clipped(grid, 100)}",
        "status": "failed",
        "error": f"cell {number} of grid {clipped(grid, 100)} cannot be read: {problem}",
        "config": "{}",
    }


def read_line(number: int, line: Mapping[str, Any]) -> dict[str, Any]:
    """Return a line of the table of cells, or one that says why it cannot be read; `config` and figures included."""
    grid = clipped(line["grid"] or UNREADABLE)
    try:
        config = parsed_json(line["config"] or "{}")
        problem = cell_problem({**line, "config": config})
        if not problem and line["status"] not in STATES:
            problem = f"status is {_described(line, 'status')}"
        if not problem and line["status"] == "done":
            problem = figure_problem(line, {name: check for name, check in _CHECKS.items() if name in line})
    except ValueError as wrong:
        problem = f"config is no JSON ({clipped(wrong)})"
    if problem:
        return unreadable_line(grid, number, line, problem)
    known = {**FIGURE_TYPES, **{name: kind for name, kind in TREATMENT_TYPES.items() if name in line}}
    figures = {name: line.get(name) if line["status"] == "done" else None for name in known}
    error = None if line["error"] is None else error_text(line["error"])
    return {**line, "grid": grid, "error": error, **figures}


def error_text(text: Any) -> str:
    """Return the error of a run in a form that is safe to display."""
    return clipped(text, _LONGEST_ERROR)


def _config_problem(config: Any) -> str:
    if not isinstance(config, dict):
        return f"config is {clipped(config, 60)}, not a table of settings"
    try:
        check_depth(config)
    except ValueError as error:
        return f"config has {error}"
    if len(json.dumps(config)) > _LONGEST_CONFIG:
        return f"config is longer than {_LONGEST_CONFIG:,} characters"
    for name, check in _SETTINGS.items():
        if config.get(name) is not None and not check(config[name]):
            return f"{name} in config is {_described(config, name)}"
    return ""


def _is_label(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST_LABEL and encodable(value) == value


def _described(values: Mapping[str, Any], name: str) -> str:
    return clipped(repr(values[name]), 60) if name in values else "missing"
