"""Both notebooks run from top to bottom, and print what they were saved with."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docs.site import ROOT, site_module

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    """What a notebook silences speaks again for the tests after it."""
    logger = logging.getLogger("flwr")
    level = logger.level
    yield
    logger.setLevel(level)


def test_there_are_two() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["flower-simulation", "library"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_prints_what_it_was_saved_with(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # Else Ray joins a cluster that another test has started on this machine, and waits for it when it is gone.
    monkeypatch.setenv("RAY_ADDRESS", "local")
    saved = json.loads(path.read_text(encoding="utf-8"))
    found = site_module("notebooks").executed(path)
    for ours, theirs in zip(found["cells"], saved["cells"], strict=True):
        assert ours.get("outputs") == theirs.get("outputs"), "".join(ours["source"])
