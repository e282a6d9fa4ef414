"""A real browser for the report's page: Debian's chromium through Playwright."""

import os
import shutil

import pytest
from tests.report import synthetic

from fedra.report.page import write_page
from fedra.report.winners import winners

PICTURE = '<svg xmlns="http://www.w3.org/2000/svg" width="60" height="40"><circle r="30" fill="red"/></svg>'


def absent(reason):
    """Skip, or fail where somebody has asked for the browser's tests."""
    if os.environ.get("FEDRA_REQUIRE_BROWSER") == "1":
        pytest.fail(f"FEDRA_REQUIRE_BROWSER=1, but {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def browser():
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        absent("playwright is not installed; pip install playwright")
    chromium = os.environ.get("FEDRA_CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        absent("there is no chromium; apt-get install chromium, or set FEDRA_CHROMIUM")
    with sync_playwright() as playwright:
        # Containers run tests as root, where chromium has no sandbox.
        started = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()


@pytest.fixture(scope="session")
def report(tmp_path_factory):
    path = tmp_path_factory.mktemp("browser") / "report.html"
    found = synthetic.results()
    made = synthetic.tables(found)
    write_page(
        path,
        found,
        made,
        title="A report",
        studies=synthetic.studies(found),
        winners=winners(made),
        figures={"Figure 1": PICTURE},
    )
    return path.as_uri()


@pytest.fixture
def visit(browser, report):
    """Return a function that opens the page; at the end nothing may have gone wrong on any page it opened."""
    troubles, contexts = [], []

    def opened(fragment="", *, width=1280, height=900, theme="light", **options):
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme, **options)
        contexts.append(context)
        page = context.new_page()
        page.on(
            "console", lambda message: troubles.append(message.text) if message.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: troubles.append(str(error)))
        inside = (report, "data:")
        page.on("request", lambda request: troubles.append(request.url) if not request.url.startswith(inside) else None)
        page.goto(report + fragment)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert troubles == []
