"""The tables of docs/real-federations.md are those of the committed results, of the grid that the page names."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

from fedra.experiments import Grid, Results

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results" / "federations"
PAGE = (ROOT / "docs" / "real-federations.md").read_text(encoding="utf-8")
GRID = Grid.read(ROOT / "benchmarks" / "federations.toml")
QUOTED = dict(re.findall(r"<!-- (federations-[a-z0-9-]+) -->\n(.*?)<!-- /\1 -->", PAGE, re.DOTALL))


@pytest.fixture(scope="module")
def script() -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        import federations
    return federations


def test_every_table_of_the_results_is_on_the_page_and_no_other(script: ModuleType) -> None:
    texts = script.texts(Results.read(RESULTS))
    assert {name: text.strip() for name, text in QUOTED.items()} == texts
    assert len(texts) == len({cell.dataset for cell in GRID.cells})


def test_the_page_says_how_the_grid_runs() -> None:
    fixed = {cell.dataset: cell.config for cell in GRID.cells}
    rows = {line.split("|")[1].strip(): line for line in PAGE.splitlines() if line.startswith("| ")}
    shown = rows["rounds, learning rate"].split("|")[2:-1]
    assert [text.strip() for text in shown] == [f"{config.rounds}, {config.lr:g}" for config in fixed.values()]


def test_flights_are_compared_by_auc_and_characters_by_accuracy(script: ModuleType) -> None:
    for name, text in script.texts(Results.read(RESULTS)).items():
        assert ("100 times the AUC" in text) == ("flights" in name)
        assert ("Accuracy after" in text) == ("flights" not in name)


def test_the_results_are_those_of_the_grid_and_complete() -> None:
    cells = Results.read(RESULTS).cells
    assert set(cells["run"]) == {cell.run for cell in GRID.cells}
    assert set(cells["status"]) == {"done"}
    assert not cells["config"].str.contains("data_dir").any()
