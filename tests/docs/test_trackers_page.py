"""docs/trackers.md: its own tracker is run, and its names are those of the code."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.trackers.samples import event_numbers, info, measured, tracked

from fedra.server import Observer
from fedra.trackers import TRACKERS, TensorBoard, make_tracker

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "trackers.md").read_text(encoding="utf-8")
OWN = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[-1]


def test_the_own_tracker_tracks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(OWN, names)
    tracked(names["JsonLines"](), info(), measured(1, 2), {})
    lines = [json.loads(line) for line in Path("rounds.jsonl").read_text().splitlines()]
    assert [(line["run"], line["round"], line["accuracy"]) for line in lines] == [
        ("digits-fedra", 1, 0.1),
        ("digits-fedra", 2, 0.2),
    ]


def test_the_own_tracker_is_ten_lines_and_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(OWN[OWN.index("class") :].split("\n\n\n")[-1].strip().splitlines()) <= 10
    (tmp_path / "my_trackers.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    (spec,) = re.findall(r'--track "(my_trackers:[^"]+)"', PAGE)
    tracker = make_tracker(spec)
    assert isinstance(tracker, Observer)
    assert vars(tracker) == {"path": "mine.jsonl"}


def test_every_tracker_is_on_the_page_with_its_extra() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for name, tracker in TRACKERS.items():
        assert f'| `{tracker.__name__}` | `pip install "fedra[{name}]"` |' in PAGE
        assert name in extras
        assert name in extras["trackers"][0]


def test_the_page_names_the_tags_that_are_written(tmp_path: Path) -> None:
    tracked(TensorBoard(folder=tmp_path), info(), measured(1), {})
    for tag in event_numbers(tmp_path / "digits-fedra"):
        assert f"`{tag}`" in PAGE
