"""The contest's page in a real browser: the leaderboard first, cells that open, and on a phone."""

import pytest
from tests.contest.contest_results import contest_results

from fedra.contest import CONTEST, Contest
from fedra.report import ReportData, write_report

pytestmark = pytest.mark.browser

SILOS = {"settings": ("digits-silos",), "added_rules": ("bulyan",)}


@pytest.fixture(scope="module")
def contest_page(tmp_path_factory):
    plain = Contest(**SILOS, attacks=("none", "lie", "adaptive", "backdoor"))
    broken = Contest(**SILOS, attacks=("optimize",), broken=True)
    data = ReportData.of(contest_results(plain, broken))
    return write_report(data, tmp_path_factory.mktemp("contest"), reference=CONTEST).page.as_uri()


def test_the_leaderboard_comes_first_and_is_sorted(visit, contest_page):
    page = visit(address=contest_page)
    headings = page.locator("h2").all_inner_texts()
    assert headings[:3] == ["Who is never far behind", "Where an assumption is broken", "The contest's tables"]
    board = page.locator("#standings table").first
    rows = [row.locator("th, td").all_inner_texts() for row in board.locator("tbody tr").all()]
    assert len(rows) == 12
    worst = [float(row[1]) for row in rows]
    assert worst == sorted(worst)
    assert all(": " in row[2] or row[2] == "\N{EN DASH}" for row in rows)


def test_cells_open_with_what_attackers_got_and_honest_clients_lost(visit, contest_page):
    page = visit(address=contest_page)
    table = page.locator("section.table").first
    assert "chosen" in table.locator("thead").inner_text()
    table.get_by_role("button", name="FedAdam, Backdoor, alpha q 10").click()
    panel = page.locator("#panel")
    assert "Clients" in panel.locator("h3").all_inner_texts()
    text = panel.inner_text()
    for words in ("backdoor success", "attackers' weight", "honest dropped", "honest silenced"):
        assert words in text
    assert "[object" not in text
    assert "NaN" not in text


def test_who_refuses_is_shown_as_that(visit, contest_page):
    page = visit(address=contest_page)
    cell = page.locator("#assumption-broken-digits-5-silos-iid td.none .state").first
    assert cell.inner_text() == "refuses"
    assert cell.get_attribute("title").startswith("bulyan needs")


def test_figures_cell_by_cell_unfold(visit, contest_page):
    page = visit(address=contest_page)
    folded = page.locator("#clients details").first
    assert not folded.locator("table").is_visible()
    folded.locator("summary").click()
    assert folded.locator("table").is_visible()
    assert page.locator("#figures img").first.evaluate("image => image.naturalWidth") > 300


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_fits_on_a_phone(visit, contest_page, theme):
    page = visit(address=contest_page, width=390, height=844, theme=theme, has_touch=True, is_mobile=True)
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    for summary in page.locator("#clients summary").all()[:3]:
        summary.click()
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    # A picture with so much text stays readable: what it stands in fits, and scrolls.
    held = page.locator("#figures .scroll").first
    assert held.bounding_box()["width"] <= 390
    assert held.evaluate("held => getComputedStyle(held).overflowX") == "auto"
    assert held.locator("img").bounding_box()["width"] > held.bounding_box()["width"]
