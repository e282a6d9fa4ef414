"""The page of an audit trail at real size, and of one that is being written, in a browser."""

import re
import threading

import pytest
from tests.audit.large import HOSTILE, write_trail
from tests.audit.records import round_record

from fedra.audit import AuditLog, read_trail
from fedra.audit.command import write_page
from fedra.audit.serving import serve

pytestmark = pytest.mark.browser

SIZES = {"150 rounds x 1,000 nodes": (150, 1000, None), "20,000 rounds": (20_000, 200, 5)}


@pytest.fixture(scope="module", params=SIZES.values(), ids=SIZES)
def large(request, tmp_path_factory):
    rounds, clients, sampled = request.param
    folder = tmp_path_factory.mktemp("audit")
    path = write_trail(folder / "a.jsonl", rounds=rounds, clients=clients, sampled=sampled)
    write_page(read_trail(path), folder / "page.html", title="a.jsonl")
    return (folder / "page.html").as_uri(), rounds, clients


@pytest.fixture
def opened(visit):
    def ready(address, **options):
        page = visit(address=address, **options)
        page.wait_for_selector("html[data-ready]")
        return page

    return ready


def expected(locator):
    """Wait for what a page comes to show; its policy lets nobody evaluate texts in it."""
    from playwright.sync_api import expect

    return expect(locator)


def rows(page, part):
    return page.locator(f"{part} tbody tr")


def test_the_summary_comes_first_and_all_rounds_are_there(opened, large):
    address, rounds, clients = large
    page = opened(address)
    tiles = page.locator("#summary .tile").all_inner_texts()
    assert tiles[0] == f"{rounds - 3:,} training rounds"
    assert tiles[2] == "3 rounds without a line"
    assert "rounds 41 to 42 (run 4711), round 97" in page.locator("#summary .missing").inner_text()
    assert page.locator("#charts figure svg.strip, #charts figure .chart > svg").count() == 3
    assert page.locator("#clients .count").inner_text() == f"{clients:,} clients"
    assert page.locator("#rounds .count").inner_text() == f"{rounds - 3:,} rounds"
    assert not re.search(r"\[object|undefined|NaN|null", page.locator("main").inner_text())
    assert page.title() == "a.jsonl: audit trail"


def test_clients_are_sorted_filtered_and_paged(opened, large):
    page = opened(large[0])
    assert rows(page, "#clients").count() == 50
    shares = [int(text.split()[0]) for text in page.locator("#clients tbody td:nth-child(4)").all_inner_texts()]
    assert shares == sorted(shares, reverse=True)
    page.locator("#clients").get_by_role("button", name="median claim").click()
    claims = [int(text.replace(",", "")) for text in page.locator("#clients tbody td:nth-child(5)").all_inner_texts()]
    assert claims == sorted(claims, reverse=True)
    assert page.locator('#clients th[aria-sort="descending"]').inner_text().startswith("median claim")
    page.locator("#clients").get_by_role("button", name="Next page").click()
    assert page.locator("#clients .pager span").inner_text().startswith("2 of ")
    page.get_by_label("Filter clients").fill("1000000000023757")
    expected(rows(page, "#clients")).to_have_count(1)
    assert "is past the cut" in rows(page, "#clients").inner_text()
    page.get_by_label("Filter clients").fill("")
    page.get_by_label("Which clients").select_option(label="claims twice its implied quantity")
    assert re.match(r"[\d,]+ of [\d,]+ clients", page.locator("#clients .count").inner_text())


def test_details_by_keyboard_alone(opened, large):
    page = opened(large[0])
    first = page.locator("#clients tbody button").first
    name = first.inner_text()
    first.focus()
    page.keyboard.press("Enter")
    dialog = page.locator("#details")
    assert dialog.locator("h2").inner_text() == f"Client {name}"
    assert "is past the cut" in dialog.locator("tbody").inner_text()
    assert dialog.locator("svg.strip path.s1").count() == 1
    dialog.locator("tbody button").first.focus()
    page.keyboard.press("Enter")
    assert re.fullmatch(r"Round \d+", dialog.locator("h2").inner_text())
    page.keyboard.press("Escape")
    assert dialog.is_hidden()
    assert page.evaluate("document.activeElement.textContent") == name


def test_a_click_on_a_mark_opens_its_round(opened, large):
    page = opened(large[0])
    page.locator("#clients svg.strip").first.click(position={"x": 150, "y": 10})
    found = page.locator("#details tr.found")
    assert found.count() == 1
    assert found.is_visible()


def test_charts_are_read_by_pointer_and_arrow_keys(opened, large):
    page = opened(large[0])
    chart = page.locator("#charts .chart").first
    chart.locator("svg").hover(position={"x": 200, "y": 100})
    assert re.match(r"rounds? \d+", chart.locator(".tip").inner_text())
    weights = page.locator("#charts .chart").nth(1)
    weights.locator("svg").focus()
    page.keyboard.press("End")
    assert "largest weight of one client" in weights.locator(".tip").inner_text()
    claims = page.locator("#charts .chart").nth(2)
    claims.locator("svg").focus()
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    assert page.locator("#details h2").inner_text().startswith("Client ")


def test_marks_differ_in_shape(opened, large):
    page = opened(large[0])
    signs = page.locator("#clients > .keys path").evaluate_all("nodes => nodes.map((node) => node.getAttribute('d'))")
    assert len(set(signs)) == len(signs) == 4


def test_hostile_names_are_only_shown(opened, large):
    page = opened(large[0])
    page.get_by_label("Filter clients").fill("onerror")
    expected(rows(page, "#clients")).to_have_count(1)
    page.locator("#clients tbody button").click()
    assert page.locator("#details h2").inner_text() == f"Client {HOSTILE}"
    assert page.locator("img").count() == 0
    assert page.title() == "a.jsonl: audit trail"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_phone(opened, large, theme):
    page = opened(large[0], theme=theme, width=390, height=844, has_touch=True, is_mobile=True)
    fits = "document.documentElement.scrollWidth - innerWidth"
    assert page.evaluate(fits) <= 0
    assert rows(page, "#clients").first.locator(".why").is_visible()
    assert page.locator("#clients svg.strip").first.bounding_box()["width"] <= 390
    page.locator("#clients tbody button").first.tap()
    assert page.evaluate(fits) <= 0
    assert page.locator("#details").evaluate("node => node.scrollWidth <= node.clientWidth")
    page.get_by_label("Close").tap()
    assert page.locator("#details").is_hidden()


def test_a_page_follows_its_trail_and_the_reader_keeps_their_place(opened, tmp_path):
    log = AuditLog(tmp_path / "a.jsonl")
    log.round(round_record(1, clients=120))
    with serve(log.path) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = opened(server.address)
        assert page.locator(".live").inner_text() == "following"
        page.locator("#clients").get_by_role("button", name="Next page").click()
        page.get_by_label("Filter clients").fill("1")
        expected(page.locator("#clients .count")).to_have_text(re.compile(r"\d+ of 120 clients"))
        log.round(round_record(2, clients=120, warnings=("look <b>here</b>",)))
        expected(page.locator("#summary .tile").first).to_have_text("2 training rounds")
        assert page.locator("#rounds .count").inner_text() == "2 rounds"
        assert page.locator("#summary b", has_text="here").count() == 0
        assert re.match(r"\d+ of 120 clients", page.locator("#clients .count").inner_text())
        server.shutdown()


def test_an_empty_trail_is_filled_while_one_looks(opened, tmp_path):
    log = AuditLog(tmp_path / "a.jsonl")
    with serve(log.path) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = opened(server.address)
        assert "no round has ended yet" in page.locator("#summary").inner_text()
        log.round(round_record(1))
        page.wait_for_selector("#charts .chart svg")
        assert rows(page, "#clients").count() == 3
        server.shutdown()
