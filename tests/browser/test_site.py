"""The built site in a browser, from a plain file server: nothing from elsewhere, search, formulas, phones."""

import pytest

pytestmark = pytest.mark.browser

PAGES = ("index.html", "rules.html", "reference/library.html", "tutorials/flower.html", "notebooks/library.html")


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_fit_and_load_nothing_from_elsewhere(visit, site, width, theme):
    for path in PAGES:
        page = visit(path, address=site, width=width, theme=theme)
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, path
        page.close()


def test_formulas_are_drawn(visit, site):
    page = visit("rules.html", address=site)
    assert page.locator("article math").count() > 80
    box = page.locator("article math").first.bounding_box()
    assert box["width"] > 5
    assert box["height"] > 5
    page = visit("reference/library.html", address=site)
    assert page.locator("article math").count() > 10
    assert ":math:" not in page.locator("article").inner_text()


def test_the_search_finds_pages(visit, site):
    from playwright.sync_api import expect

    page = visit("index.html", address=site)
    page.locator("input[placeholder=Search]").fill("centred clipping")
    expect(page.locator(".md-search-result__item").first).to_be_visible()
    assert "The rules" in page.locator(".md-search-result__list").inner_text()
