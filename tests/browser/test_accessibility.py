"""axe-core finds no fault on any page that fedra writes, and no serious one on the site, in light and dark."""

import pytest

pytestmark = pytest.mark.browser

SITE = (
    "index.html",
    "assess.html",
    "choosing.html",
    "rules.html",
    "contest.html",
    "tutorials/exposed.html",
    "tutorials/flower.html",
    "notebooks/library.html",
    "reference/library.html",
    "reference/command-line.html",
)


SERIOUS = ("serious", "critical")


def faults(page, impacts=("minor", "moderate", *SERIOUS)):
    """Return what axe-core finds, with the places."""
    from axe_playwright_python.sync_playwright import Axe

    # What still rises or fades in has other colours on the way.
    page.wait_for_function("document.getAnimations().every((each) => each.playState !== 'running')")
    found = Axe().run(page).response["violations"]
    return [
        (fault["id"], fault["help"], [node["html"][:200] for node in fault["nodes"][:4]])
        for fault in found
        if fault["impact"] in impacts
    ]


@pytest.fixture(params=["light", "dark"])
def look(visit, request):
    """Return a function that opens a page in this theme; its policy would not let axe-core in."""

    def opened(address, path="", **options):
        return visit(path, address=address, theme=request.param, bypass_csp=True, **options)

    return opened


def test_faults_are_found(look, assess_page):
    page = look(assess_page)
    page.evaluate("document.querySelector('h1').style.color = 'grey'; document.querySelector('h1').style.opacity = .3")
    page.evaluate("document.getElementById('theme').textContent = ''")
    page.evaluate("document.getElementById('theme').removeAttribute('aria-label')")
    assert {fault[0] for fault in faults(page)} == {"button-name", "color-contrast"}


@pytest.mark.parametrize("width", [390, 1280])
def test_assessment(look, assess_page, width):
    page = look(assess_page, width=width)
    page.locator("#worst summary").click()
    assert faults(page) == []


@pytest.mark.parametrize("width", [390, 1280])
def test_audit_trail(look, audit_page, width):
    page = look(audit_page, width=width)
    page.wait_for_selector("html[data-ready]")
    assert faults(page) == []
    page.locator("#clients tbody button").first.click()
    assert faults(page) == []


@pytest.mark.parametrize("width", [390, 1280])
def test_report(look, report, width):
    page = look(report, width=width)
    assert faults(page) == []
    page.locator("section.table button.cell").first.click()
    assert faults(page) == []


@pytest.mark.parametrize("width", [390, 1280])
def test_report_of_one_run(look, run_report, width):
    assert faults(look(run_report, width=width)) == []


@pytest.mark.parametrize("path", SITE)
def test_site(look, site, path):
    assert faults(look(site, path), SERIOUS) == []
