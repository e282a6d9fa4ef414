"""The built site in a browser, from a plain file server: nothing from elsewhere, search, formulas, phones."""

import functools
import http.server
import threading

import pytest
from tests.docs.site import ROOT

pytestmark = pytest.mark.browser

PAGES = ("index.html", "rules.html", "reference/library.html", "tutorials/flower.html", "notebooks/library.html")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build it as `make docs` does, where a warning is an error, and serve it."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    folder = tmp_path_factory.mktemp("site")
    config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder))
    config.plugins.on_startup(command="build", dirty=False)
    build(config)
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    handler.log_message = lambda *arguments: None
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


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
