"""The page of one run, in a browser."""

import re

import pytest

pytestmark = pytest.mark.browser


def test_charts_are_drawn_and_read(visit, run_report):
    page = visit(address=run_report)
    assert page.locator("#accuracy-chart polyline").count() == 1
    assert page.locator("#rejection-chart polyline").count() == 4
    assert page.locator("#score-chart .bars rect").count() > 10
    page.locator("#accuracy-chart svg").hover(position={"x": 300, "y": 100})
    assert re.match(r"round \d+", page.locator("#accuracy-chart .tip").inner_text())
    page.locator("#accuracy-chart svg").focus()
    page.keyboard.press("End")
    assert page.locator("#accuracy-chart .tip").inner_text().startswith("round 30")
    assert not re.search(r"\[object|undefined|NaN|null", page.locator("main").inner_text())


def test_the_command_can_be_copied(visit, run_report):
    page = visit(address=run_report, permissions=["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="copy").click()
    page.get_by_role("button", name="copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == page.locator("code").inner_text()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 700, 1280])
def test_it_fits(visit, run_report, width, theme):
    page = visit(address=run_report, width=width, theme=theme)
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    picture = page.locator("#accuracy-chart svg").bounding_box()
    assert picture["x"] + picture["width"] <= width
