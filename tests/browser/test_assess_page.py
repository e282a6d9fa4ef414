"""The page of an assessment in a browser: a golden one, its chart, phones, keyboards.

After a change that is meant, write the golden text anew:
FEDRA_WRITE_GOLDEN=1 python -m pytest -m browser tests/browser/test_assess_page.py
"""

import os
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

GOLDEN = Path(__file__).with_name("golden") / "assess.txt"
PHONE = {"width": 390, "height": 844, "has_touch": True, "is_mobile": True}


def shown(page):
    """Return all that the page shows, one line for each block or row."""
    text = page.locator("#page").inner_text()
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip()) + "\n"


def test_the_golden_page(visit, assess_page):
    page = visit(address=assess_page)
    page.wait_for_selector("html[data-ready]")
    page.locator("#worst summary").click()
    found = shown(page)
    if os.environ.get("FEDRA_WRITE_GOLDEN") == "1":
        GOLDEN.write_text(found, encoding="utf-8")
    assert found == GOLDEN.read_text(encoding="utf-8")
    assert not re.search(r"\[object|undefined|NaN|null", found)
    assert page.title() == "Is this federation exposed?"


def test_the_chart_is_read_by_pointer_and_arrow_keys(visit, assess_page):
    page = visit(address=assess_page)
    chart = page.locator("#worst-chart .chart")
    assert chart.locator("polyline").count() == 3
    strokes = chart.locator("polyline").evaluate_all("nodes => nodes.map((node) => getComputedStyle(node).stroke)")
    dashes = chart.locator("polyline").evaluate_all(
        "nodes => nodes.map((node) => node.getAttribute('stroke-dasharray'))"
    )
    assert len(set(strokes)) == len(set(dashes)) == 3
    assert page.locator("#worst-chart .key").all_inner_texts() == ["fedavg", "fedra", "median"]
    assert chart.locator(".frame text").all_text_contents()[-5:-1] == ["0", "1", "2", "3"]
    chart.locator("svg").focus()
    page.keyboard.press("Home")
    assert chart.locator(".tip b").first.inner_text() == "0 attackers"
    page.keyboard.press("ArrowRight")
    assert chart.locator(".tip").inner_text().splitlines()[0] == "1 attacker"
    assert "\N{MINUS SIGN}1.00" in chart.locator(".tip").inner_text()
    chart.locator("svg").hover(position={"x": 300, "y": 100})
    assert re.match(r"\d attackers?", chart.locator(".tip").inner_text())


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("options", [PHONE, {"width": 700}, {"width": 1280}], ids=["phone", "700", "1280"])
def test_it_fits(visit, assess_page, options, theme):
    page = visit(address=assess_page, theme=theme, **options)
    page.locator("#worst summary").click()
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    picture = page.locator("#worst-chart svg").first.bounding_box()
    assert picture["x"] + picture["width"] <= options["width"]
    assert page.locator("#advice h2").is_visible()


def test_themes_by_button_and_the_way_past_the_top(visit, assess_page):
    page = visit(address=assess_page)
    ground = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(ground)
    page.get_by_role("button", name="Colours: auto").click()
    page.get_by_role("button", name="Colours: light").click()
    assert page.evaluate(ground) != before
    page.reload()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the findings"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "findings"


def test_without_scripts_all_figures_are_there(visit, assess_page):
    page = visit(address=assess_page, java_script_enabled=False)
    text = page.locator("main").inner_text()
    assert "Use fedra." in text
    assert "none: one claim decides" in text
