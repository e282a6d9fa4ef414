"""The tables that docs show are those of the committed results."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

from fedra.experiments import Results

ROOT = Path(__file__).parent.parent.parent
QUOTING = ("reproduction-tables", "reproduction-studies", "security", "choosing")
PAGES = tuple(ROOT / "docs" / f"{name}.md" for name in QUOTING)
# Names with a digit, a hyphen or a space: the others are those of benchmarks, or of the contest.
QUOTED = re.compile(r"<!-- ((?!contest-|assumption-)[a-z]+[0-9]*-[^>]*?|winners) -->\n(.*?)<!-- /\1 -->", re.DOTALL)


@pytest.fixture(scope="module")
def script() -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        import reproduction
    return reproduction


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_quoted_tables_are_those_of_the_results(page: Path, script: ModuleType) -> None:
    quoted = dict(QUOTED.findall(page.read_text(encoding="utf-8")))
    assert quoted
    texts = script.texts(Results.read(ROOT / "results"))
    for name, text in quoted.items():
        assert text.strip() == texts[name], f"{page.name}: {name}; run make reproduction"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_marker_is_closed(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for name in re.findall(r"<!-- ([^/>][^>]*?) -->", text):
        assert text.count(f"<!-- {name} -->") == text.count(f"<!-- /{name} -->") == 1


def test_committed_results_say_nothing_of_this_machine_and_are_complete() -> None:
    cells = Results.read(ROOT / "results").cells
    assert not cells["config"].str.contains("data_dir").any()
    assert set(cells["status"]) == {"done"}
