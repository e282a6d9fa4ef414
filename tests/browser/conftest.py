"""A real browser for the report's page: Debian's chromium through Playwright."""

import functools
import http.server
import os
import shutil
import threading

import pytest
from tests.assess import samples
from tests.audit.records import round_record
from tests.docs.site import ROOT
from tests.report import synthetic

from fedra.assess import assessment_page
from fedra.audit import AuditLog
from fedra.audit.command import audit
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


@pytest.fixture(scope="session")
def assess_page(tmp_path_factory):
    path = tmp_path_factory.mktemp("browser") / "assess.html"
    path.write_text(assessment_page(samples.assessment()), encoding="utf-8")
    return path.as_uri()


@pytest.fixture(scope="session")
def audit_page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("browser")
    log = AuditLog(folder / "audit.jsonl")
    for number in range(1, 6):
        log.round(
            round_record(number, clients=60, warnings=("one client is most of the result",) if number == 3 else ())
        )
    audit(folder / "audit.jsonl", folder / "audit.html")
    return (folder / "audit.html").as_uri()


@pytest.fixture(scope="session")
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
