"""What builds the site: formulas, made pages, and the look at its links."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from markdown import Markdown
from tests.docs.site import ROOT, site_module

hooks, links = site_module("hooks"), site_module("links")
PAGES = sorted((ROOT / "docs").rglob("*.md"))


def rendered(text: str) -> str:
    return Markdown(extensions=["fenced_code", "tables", hooks.Formulas()]).convert(text)


def test_formulas_become_mathml_and_code_stays() -> None:
    html = rendered("$x_1$ and :math:`\\sum_i q^i` and `$HOME` and\n\n$$\n\\frac{a}{b}\n$$\n\n```sh\necho $A $B\n```\n")
    assert html.count("<math") == 3
    assert html.count('display="block"') == 1
    assert "<mfrac>" in html
    assert "<code>$HOME</code>" in html
    assert "echo $A $B" in html


@pytest.mark.parametrize("text", ["costs $5 and more", r"\$5 or 6\$", "a $ b $ c"])
def test_a_dollar_alone_is_no_formula(text: str) -> None:
    assert "<math" not in rendered(text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT / "docs").as_posix())
def test_every_formula_of_the_pages_can_be_shown(page: Path) -> None:
    html = rendered(page.read_text(encoding="utf-8"))
    assert not re.search(r"<mtext>\\|<mi>\\", html)


def test_every_formula_of_the_docstrings_can_be_shown() -> None:
    found = 0
    for path in (ROOT / "src").rglob("*.py"):
        for formula in re.findall(r":math:`([^`]+)`", path.read_text(encoding="utf-8")):
            assert hooks.mathml(formula, "inline").startswith('<span class="formula"><math')
            found += 1
    assert found > 40


def test_the_command_page_has_every_command_and_default() -> None:
    page = hooks.command_page()
    for command in ("run", "grid", "paper", "report", "demo", "rules", "attacks", "audit", "data get"):
        assert f"# fedra {command}\n" in page
    assert "| `--rounds` | How many rounds. | `100` |" in page
    assert "`--serve`" in page


def test_a_notebook_becomes_a_page_with_what_it_printed() -> None:
    page = hooks.notebook_page(ROOT / "docs" / "notebooks" / "library.ipynb")
    assert page.startswith("# The library, in one notebook")
    assert "```text\nkept: 11 of 12" in page


def test_links_that_lead_nowhere_and_loads_from_elsewhere_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<a href="b.html#there">x</a><a href="b.html#gone">x</a><a href="c.html">x</a><a href="https://example.org/">x</a>'
        '<script src="https://cdn.example.org/x.js"></script><link rel="stylesheet" href="//fonts.example.org/f.css">',
        encoding="utf-8",
    )
    (tmp_path / "b.html").write_text('<p id="there">', encoding="utf-8")
    assert list(links.faults(tmp_path)) == [
        "a.html links to b.html#gone, where that place is not",
        "a.html links to c.html, which is not there",
        "a.html loads https://cdn.example.org/x.js",
        "a.html loads //fonts.example.org/f.css",
    ]
