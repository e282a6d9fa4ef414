"""docs/architecture.md names what is there, and every way to add something has its page."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
NAMES = sorted(set(re.findall(r"`(fedra(?:\.\w+)+)`", PAGE)))
PLACES = re.findall(r"^\| (`.*?`) \|", PAGE, re.MULTILINE)


def found(name: str) -> Any:
    """Return what stands at a dotted name, as far as it is a module by import, then by attribute."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            value: Any = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError as error:
            if not name.startswith(str(error.name)):
                raise
            continue
        for part in parts[length:]:
            value = getattr(value, part)
        return value
    raise AssertionError(name)


def test_there_are_three_walks() -> None:
    assert len(NAMES) > 25


@pytest.mark.parametrize("name", NAMES)
def test_each_step_of_a_walk_is_there(name: str) -> None:
    found(name)


def test_every_room_is_on_the_map() -> None:
    listed = {place for line in PLACES for place in re.findall(r"`([\w./]+)`", line)}
    rooms = {
        f"{entry.name}/" if entry.is_dir() else entry.name
        for entry in (ROOT / "src" / "fedra").iterdir()
        if not entry.name.startswith("__") and not entry.name.endswith(".typed")
    }
    assert rooms <= listed, rooms - listed


def test_each_way_to_add_something_leads_to_a_heading() -> None:
    rows = re.findall(r"^\| (.*?) \| (.*?) \| \[\w+\.md\]\((\w+\.md)#([\w-]+)\) \|$", PAGE, re.MULTILINE)
    assert len(rows) == 9
    for what, touched, page, anchor in rows:
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        headings = [
            re.sub(r"[^\w -]", "", line.lstrip("# ").lower()).replace(" ", "-")
            for line in text.splitlines()
            if line.startswith("#")
        ]
        assert anchor in headings, (what, anchor)
        assert len(touched.split(", ")) <= 2, what
