import re

import pytest
from tests.report import synthetic

pytestmark = pytest.mark.browser

FEDRA = "#cell=table2-mnist~FedRA~LIE~10"
PHONE = {"width": 390, "height": 844, "has_touch": True, "is_mobile": True}


def cell(page, link):
    return page.locator(f'[data-cell="{link}"]')


def overflow(page):
    return page.evaluate("document.documentElement.scrollWidth - innerWidth")


def lines(page):
    return page.locator("#panel .chart").first.locator("polyline")


def test_first_cells_of_every_table_open_the_panel(visit):
    page = visit()
    tables = page.locator("section.table")
    assert tables.count() == 7
    for number in range(tables.count()):
        for button in tables.nth(number).locator("button.cell").all()[:3]:
            button.click()
            label = button.get_attribute("aria-label")
            assert label.startswith(page.locator("#panel-title").inner_text().split(" ")[0])
            assert page.locator("#panel .chart svg").count() >= 1
            assert page.locator("#panel code").inner_text().startswith("fedra run --dataset mnist")
            assert not re.search(r"\[object|undefined|NaN|null", page.locator("#panel").inner_text())
            assert page.locator("#panel .figures dd").first.inner_text() in button.inner_text()


def test_the_panel_shows_curves_filtering_scores_and_settings(visit):
    page = visit(FEDRA)
    panel = page.locator("#panel")
    assert panel.locator("h3").all_inner_texts() == ["Accuracy over rounds", "Filtering", "Scores", "Repeat it"]
    assert lines(page).count() == 2 + 5
    assert panel.locator(".bars rect").count() > 20
    drawn = panel.locator("polyline, .bars rect")
    strokes = set(drawn.evaluate_all("nodes => nodes.map((node) => getComputedStyle(node).stroke)"))
    assert len(strokes) >= 6
    assert "none" not in strokes
    assert "rounds" in panel.locator("table.text").inner_text()
    assert panel.get_by_text("0.910").is_visible()
    command = panel.locator("code").inner_text()
    panel.get_by_role("combobox").select_option(label="seed 1")
    assert panel.locator("code").inner_text() == f"{command} --seed 1"


def test_hovering_and_arrow_keys_read_the_curves(visit):
    page = visit(FEDRA)
    chart = page.locator("#panel .chart").first
    chart.locator("svg").hover(position={"x": 300, "y": 100})
    assert re.match(r"round \d+", chart.locator(".tip").inner_text())
    assert len(chart.locator(".tip").inner_text().splitlines()) == 1 + 2 * 7
    page.mouse.move(5, 5)
    assert chart.locator(".tip").is_hidden()
    chart.locator("svg").focus()
    page.keyboard.press("End")
    assert chart.locator(".tip").inner_text().startswith("round 250")
    page.keyboard.press("ArrowLeft")
    assert chart.locator(".tip").inner_text().startswith("round 225")
    bars = page.locator("#panel .chart").last
    bars.locator("svg").hover(position={"x": 200, "y": 100})
    assert "honest" in bars.locator(".tip").inner_text()


def test_lines_are_put_out_and_back(visit):
    page = visit(FEDRA)
    before = lines(page).count()
    key = page.get_by_role("button", name="FedAdam", exact=True)
    key.click()
    assert key.get_attribute("aria-pressed") == "false"
    assert lines(page).count() == before - 1
    cell(page, "table4-mnist~FedRA~LIE~10").click()
    assert page.get_by_role("button", name="FedAdam", exact=True).get_attribute("aria-pressed") == "false"
    page.get_by_role("button", name="this one only").click()
    assert lines(page).count() == 2
    page.get_by_role("button", name="all", exact=True).click()
    assert lines(page).count() == before


def test_the_switch_changes_which_figure_is_large(visit):
    page = visit()
    button = cell(page, "table2-mnist~FedRA~LIE~10")

    def sizes():
        return {
            name: button.locator(f".{name}").evaluate("node => parseFloat(getComputedStyle(node).fontSize)")
            for name in ("ours", "published", "difference")
        }

    for view in ("published", "difference", "ours"):
        page.get_by_label(view, exact=True).check(force=True)
        found = sizes()
        assert max(found, key=found.get) == view
        assert sorted(found.values())[1] < found[view]


def test_themes(visit):
    ground = "getComputedStyle(document.body).backgroundColor"
    page = visit()
    light = page.evaluate(ground)
    button = page.locator("#theme")
    button.click()
    assert page.evaluate(ground) == light
    button.click()
    dark = page.evaluate(ground)
    assert dark != light
    assert visit(theme="dark").evaluate(ground) == dark


def test_keyboard_alone(visit):
    page = visit()
    button = cell(page, "table2-mnist~FedAdam~Label Flip~0".replace(" ", "%20"))
    button.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert page.locator("#panel-title").inner_text().startswith("Norm-Bound Label Flip")
    assert page.evaluate("document.activeElement.id") == "panel"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Close"
    page.keyboard.press("Escape")
    assert page.locator("#panel").is_hidden()
    assert page.evaluate("document.activeElement.dataset.cell") == "table2-mnist~Norm-Bound~Label%20Flip~10"
    page.keyboard.press("Space")
    assert page.locator("#panel").is_visible()


def test_deep_links_open_and_the_way_back_closes(visit):
    page = visit("#cell=table2-mnist~RFA~LIE~10")
    assert page.locator("#panel-title").inner_text().startswith("RFA LIE")
    assert cell(page, "table2-mnist~RFA~LIE~10").is_visible()
    page.get_by_label("Close").click()
    assert "cell=" not in page.url
    cell(page, "table4-mnist~FedRA~LIE~0").click()
    assert page.url.endswith("#cell=table4-mnist~FedRA~LIE~0")
    page.go_back()
    assert page.locator("#panel").is_hidden()
    page.go_forward()
    assert page.locator("#panel-title").inner_text().startswith("FedRA LIE")


@pytest.mark.parametrize("fragment", ["#cell=nothing", "#cell=%E0%A4%A", "#table4-mnist", "#"])
def test_other_fragments_open_nothing(visit, fragment):
    assert visit(fragment).locator("#panel").is_hidden()


def test_failed_runs_tell_their_error(visit):
    page = visit("#cell=table2-mnist~RFA~LIE~10")
    assert synthetic.ERROR in page.locator("#panel .troubles").inner_text()
    assert page.locator("#panel polyline.strong").first.is_visible()


def test_hostile_labels_do_nothing(visit):
    page = visit()
    page.locator("#comparisons button.cell").last.click()
    assert synthetic.HOSTILE in page.locator("#panel-title").inner_text()
    page.locator("#panel .chart svg").first.hover(position={"x": 300, "y": 100})
    assert synthetic.HOSTILE in page.locator("#panel .tip").first.inner_text()
    assert page.title() == "A report"
    assert page.locator("img:not(#figures img)").count() == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_phone(visit, theme):
    page = visit(theme=theme, **PHONE)
    assert overflow(page) <= 0
    table = page.locator("section.table .scroll").first
    assert table.evaluate("node => node.scrollWidth > node.clientWidth")
    table.evaluate("node => { node.scrollLeft = 200; }")
    first = table.locator("tbody th").first.bounding_box()
    assert first["x"] == pytest.approx(table.bounding_box()["x"], abs=2)
    cell(page, "table2-mnist~FedRA~Optimize~0").tap()
    page.wait_for_timeout(300)
    assert overflow(page) <= 0
    sheet = page.locator("#panel").bounding_box()
    assert sheet["width"] == pytest.approx(390, abs=1)
    assert sheet["y"] + sheet["height"] == pytest.approx(844, abs=1)
    assert page.locator("#panel").evaluate("node => node.scrollWidth <= node.clientWidth")
    page.locator("#panel .chart svg").first.tap(position={"x": 200, "y": 100})
    assert "round" in page.locator("#panel .tip").first.inner_text()
    page.locator("#backdrop").tap(position={"x": 195, "y": 20})
    assert page.locator("#panel").is_hidden()


def test_it_narrows_and_widens_while_open(visit):
    page = visit(FEDRA)
    for width in (390, 700, 1000, 1280):
        page.set_viewport_size({"width": width, "height": 844})
        page.wait_for_timeout(100)
        assert overflow(page) <= 0
        assert page.evaluate("document.getElementById('page').inert") == (width < 760)
        picture = page.locator("#panel .chart svg").first.bounding_box()
        assert picture["x"] + picture["width"] <= width


def test_the_command_can_be_copied(visit):
    page = visit(FEDRA, permissions=["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="copy").click()
    page.get_by_role("button", name="copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == page.locator("#panel code").inner_text()


def test_pictures_are_drawn(visit):
    picture = visit().locator("#figures img")
    assert picture.evaluate("node => [node.naturalWidth, node.naturalHeight]") == [60, 40]


def test_print_has_all_tables_and_no_controls(visit):
    page = visit(FEDRA, theme="dark")
    page.emulate_media(media="print")
    assert page.locator("#panel").is_hidden()
    assert page.locator(".bar").is_hidden()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator("section.table").last.is_visible()
    assert page.pdf().startswith(b"%PDF")
