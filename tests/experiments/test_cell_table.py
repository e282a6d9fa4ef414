"""Lines of cells from files that may be damaged; whole folders of them are in tests/security/test_tampered_grids.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedra.experiments import Grid
from fedra.experiments.cell_table import CELL_TYPES, FIGURE_TYPES, cell_problem, error_text, grid_lines, read_line

CELL = Grid.from_dict({"attacks": ["lie"], "alpha_q": [10], "rules": ["fedavg"]}).cells[0]
GOOD: dict[str, Any] = {**CELL.labels, "run": CELL.run, "config": CELL.config.to_dict()}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def lines_of(tmp_path: Path, cells: Any) -> list[dict[str, Any]]:
    file = tmp_path / "g.json"
    file.write_text(json.dumps(cells), encoding="utf-8")
    return grid_lines(file)


def test_a_good_cell_is_a_line(tmp_path: Path) -> None:
    (line,) = lines_of(tmp_path, [GOOD])
    assert line["grid"] == "g"
    assert {key: line[key] for key in CELL.labels} == CELL.labels
    assert json.loads(line["config"])["rule"] == "fedavg"
    assert None not in json.loads(line["config"]).values()
    assert "status" not in line


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"rule": 3}, "rule is 3"),
        ({"attack": ""}, "attack is ''"),
        ({"seed": True}, "seed is True"),
        ({"alpha_q": "ten"}, "alpha_q is 'ten'"),
        ({"run": "../../etc"}, "run is '../../etc', which names no folder in runs/"),
        ({"config": [1]}, "config is [1], not a table of settings"),
        ({"config": {**GOOD["config"], "rounds": "many"}}, "rounds in config is 'many'"),
    ],
)
def test_a_damaged_cell_is_failed_with_the_reason(tmp_path: Path, change: dict[str, Any], problem: str) -> None:
    bad, good = lines_of(tmp_path, [{**GOOD, **change}, GOOD])
    assert bad["status"] == "failed"
    assert bad["error"] == f"cell 1 of grid g cannot be read: {problem}"
    assert "status" not in good


@pytest.mark.parametrize("name", ["dataset", "seed", "alpha_q", "run", "config"])
def test_what_is_missing_is_named(name: str) -> None:
    assert name in cell_problem({key: value for key, value in GOOD.items() if key != name})
    assert cell_problem(GOOD) == ""


@pytest.mark.parametrize("text", ["{", "{}", "7", "[" * 5000, ""])
def test_a_file_that_is_no_list_is_an_error_with_its_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "g.json").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"g\.json cannot be read .*call fedra grid or fedra paper again"):
        grid_lines(tmp_path / "g.json")


@given(cell=JSON, place=st.sampled_from([*GOOD, None]))
def test_anything_makes_a_line_that_can_be_written(cell: Any, place: str | None) -> None:
    given_cell = cell if place is None else {**GOOD, place: cell}
    problem = cell_problem(given_cell if isinstance(given_cell, dict) else {})
    assert problem.isprintable()
    assert len(problem) < 500


def done_line(**changes: Any) -> dict[str, Any]:
    figures = {
        **dict.fromkeys(FIGURE_TYPES),
        "final_accuracy": 90.0,
        "rounds": 100,
        "rounds_without_update": 0,
        "seconds": 1.0,
        "num_clients": 140,
        "num_malicious_clients": 14,
        "num_parameters": 650,
        "weights_sha256": "0" * 64,
    }
    labels = {**CELL.labels, "run": CELL.run, "config": json.dumps(GOOD["config"])}
    return {"grid": "g", **labels, "status": "done", "error": None, **figures, **changes}


def test_a_line_of_the_table_is_read_back() -> None:
    line = read_line(1, done_line())
    assert set(line) == {*CELL_TYPES, *FIGURE_TYPES}
    assert (line["status"], line["final_accuracy"], line["error"]) == ("done", 90.0, None)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"status": "great"}, "status is 'great'"),
        ({"final_accuracy": 101.0}, "final_accuracy is 101.0"),
        ({"attack_success": -1.0}, "attack_success is -1.0"),
        ({"malicious_weight": 1.5}, "malicious_weight is 1.5"),
        ({"honest_silenced": "all"}, "honest_silenced is all"),
        ({"weights_sha256": "x"}, "weights_sha256 is x"),
        ({"config": "{"}, "config is no JSON"),
        ({"rule": "\x1b[31m"}, None),
    ],
)
def test_a_line_that_makes_no_sense_is_failed(change: dict[str, Any], problem: str | None) -> None:
    line = read_line(7, done_line(**change))
    if problem is None:
        assert "\x1b" not in str(line["error"])
        return
    assert line["status"] == "failed"
    assert line["error"].startswith("cell 7 of grid g cannot be read: ")
    assert problem in line["error"]


def test_figures_count_for_what_is_done_only() -> None:
    line = read_line(1, done_line(status="unfinished"))
    assert [line[name] for name in FIGURE_TYPES] == [None] * len(FIGURE_TYPES)


def test_errors_are_short_and_on_one_line() -> None:
    assert error_text("a\x1b[31m\nb") == "a [31m b"
    assert len(error_text("x" * 10_000)) == 2_000
