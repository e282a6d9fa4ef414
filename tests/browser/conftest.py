"""A real browser for the report's page: Debian's chromium through Playwright."""

import os
import shutil

import pytest
from tests.report import synthetic

from fedra.report import build_report
from fedra.report.page import write_page
from fedra.simulation import SimulationConfig, simulate

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
    data, extension, tables = synthetic.report(synthetic.results())
    write_page(path, data, extension, tables, title="A report", source="Somebody", pictures={"Figure 1": PICTURE})
    return path.as_uri()


@pytest.fixture(scope="session")
def run_report(tmp_path_factory):
    path = tmp_path_factory.mktemp("browser") / "run"
    settings = {"rule": "fedra", "attack": "lie", "alpha_q": 10.0, "rounds": 30, "eval_every": 5}
    simulate(SimulationConfig(**settings), out=path)
    return build_report(path, figures=False).page.as_uri()


@pytest.fixture
def visit(browser, report):
    """Return a function that opens a page; at the end nothing may have gone wrong on any that it opened."""
    troubles, contexts = [], []

    def opened(fragment="", *, address=report, width=1280, height=900, theme="light", **options):
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme, **options)
        contexts.append(context)
        page = context.new_page()
        page.on(
            "console", lambda message: troubles.append(message.text) if message.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: troubles.append(str(error)))
        inside = (address, "data:")
        page.on("request", lambda request: troubles.append(request.url) if not request.url.startswith(inside) else None)
        page.goto(address + fragment)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert troubles == []
