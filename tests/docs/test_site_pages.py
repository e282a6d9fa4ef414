"""The site's tutorials and how-tos: every snippet runs, in order, in an empty directory, and prints what it says."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fedra.cli import app

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [DOCS / "index.md", *sorted((DOCS / "tutorials").glob("*.md")), *sorted((DOCS / "how-to").glob("*.md"))]


def run_page(page: Path) -> tuple[str, dict[str, Any]]:
    """Run all snippets of a page; return what Python printed, and the names that it left."""
    names: dict[str, Any] = {"__name__": "__main__"}
    printed = io.StringIO()
    text = page.read_text(encoding="utf-8")
    for before, language, snippet in re.findall(r"([^\n]*)\n\n```(\w+)\n(.*?)```", text, re.DOTALL):
        if saved := re.search(r"Save it as `(\w+\.py)`", before):
            Path(saved[1]).write_text(snippet, encoding="utf-8")
        if language == "python":
            with contextlib.redirect_stdout(printed):
                exec(compile(snippet, str(page), "exec"), names)
        elif not snippet.startswith("pip install"):
            assert language == "sh", language
            for line in snippet.splitlines():
                program, *arguments = shlex.split(line)
                assert program == "fedra", line
                done = CliRunner().invoke(app, arguments)
                assert done.exit_code == 0, f"{line}\n{done.output}"
    return printed.getvalue(), names


@pytest.fixture
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("my_rules", None)


@pytest.mark.usefixtures("_elsewhere")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_snippet_runs_and_prints_what_the_page_says(page: Path) -> None:
    printed, names = run_page(page)
    for stated in re.findall(r"That prints `([^`]+)`", page.read_text(encoding="utf-8")):
        assert stated in printed, printed
    if page.stem in CHECKS:
        CHECKS[page.stem](printed, names)


def index(printed: str, names: dict[str, Any]) -> None:
    assert not names["verdict"].kept[7]
    assert names["verdict"].kept.sum() == 11


def flower(printed: str, names: dict[str, Any]) -> None:
    assert names["guarded"] < 1 < 30 < names["without"]
    assert Path("audit.html").is_file()


def ratio(printed: str, names: dict[str, Any]) -> None:
    lines = printed.splitlines()
    assert lines[:4] == ["0.05 [1, 1, 3]", "0.1 [1, 2, 5]", "0.2 [2, 4, 10]", "0.3 [3, 6, 15]"]
    errors = [float(line.split()[1]) for line in lines[5:8]]
    assert errors[0] > errors[1] > 5 * errors[2]
    assert lines[8:] == ["MultiKrum 12 of 20 kept", "FedRA 20 of 20 kept"]


def few_silos(printed: str, names: dict[str, Any]) -> None:
    lines = printed.splitlines()
    assert lines[:6] == ["concord 5", "fedra 5", "multi-krum 5", "bulyan 7", "trimmed-mean 3", "median 1"]
    assert lines[6].startswith("'' | fedra needs n > 2m+2")
    assert names["verdict"].kept[0]


def non_iid(printed: str, names: dict[str, Any]) -> None:
    plain, mixed = map(float, printed.split())
    assert mixed < plain


def batch_norm(printed: str, names: dict[str, Any]) -> None:
    assert printed.splitlines() == ["with statistics: True  without: False", "['conv.weight', 'norm.weight']"]


def large_models(printed: str, names: dict[str, Any]) -> None:
    assert printed.splitlines() == ["client 3 kept: False", "(32, 64)", "(100000,)"]


def gpu(printed: str, names: dict[str, Any]) -> None:
    assert printed == "float32 105\n"


def privacy(printed: str, names: dict[str, Any]) -> None:
    first, *_, last = printed.splitlines()
    assert (first, last) == ("0.0 liar kept: False", "30.0 liar kept: True")


def resume(printed: str, names: dict[str, Any]) -> None:
    assert printed == "45\n"


def exposed(printed: str, names: dict[str, Any]) -> None:
    fedavg, median = names["found"].rules
    assert fedavg.outlook.turned_at == 1
    assert median.liar.best.share < 0.1
    assert median.cost.error > fedavg.cost.error
    assert "<h1>Is this federation exposed?</h1>" in Path("exposed.html").read_text(encoding="utf-8")


CHECKS = {
    "exposed": exposed,
    "index": index,
    "flower": flower,
    "ratio": ratio,
    "few-silos": few_silos,
    "non-iid": non_iid,
    "resume": resume,
    "batch-norm": batch_norm,
    "large-models": large_models,
    "gpu": gpu,
    "privacy": privacy,
}
