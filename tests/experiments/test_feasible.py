"""Federations that are not possible, told before the first run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fedra.experiments import Grid, check_feasible, missing_runs


def check(tmp_path: Path, **values: Any) -> None:
    grid = Grid.from_dict({"rules": ["fedavg", "median"], "attacks": ["lie"], **values})
    check_feasible(missing_runs(grid, tmp_path / "g"))


@pytest.mark.parametrize(
    ("fixed", "message"),
    [
        ({"num_sampled": 141}, "has only 140 clients"),
        ({"num_malicious": 141}, "num_malicious=141 but the federation has only 140 clients"),
        ({"malicious": "largest 141"}, "'largest 141' but the federation has only 140 clients"),
        ({"malicious": [140]}, "numbers from 0 to 139"),
        ({"quantities": [1400, 100], "num_sampled": 2}, "add up to 1500, but there are 1438 training samples"),
        ({"quantities": "equal", "num_clients": 2000}, "give at most 1438"),
    ],
)
def test_what_only_the_data_tell(tmp_path: Path, fixed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"digits-iid.*{message}.*nothing was run"):
        check(tmp_path, fixed=fixed)
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_another_length(tmp_path: Path) -> None:
    (tmp_path / "who.csv").write_text("a\nb\n", encoding="utf-8")
    with pytest.raises(ValueError, match="clients of 2 samples, but there are 1,438"):
        check(tmp_path, federation={"partition": str(tmp_path / "who.csv"), "num_sampled": 2})


def test_what_is_possible_and_data_that_are_not_there(tmp_path: Path) -> None:
    check(tmp_path, fixed={"num_sampled": 140})
    check(tmp_path, datasets=["mnist"], fixed={"data_dir": str(tmp_path), "num_sampled": 10**6})
