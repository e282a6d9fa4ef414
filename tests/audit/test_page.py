from __future__ import annotations

from tests.audit.pages import Page
from tests.audit.records import round_record

from fedra.audit import AuditLog, read_trail
from fedra.audit.page import audit_page, columns
from fedra.pages import content_hash


def page_of(tmp_path, *records, title: str = "a.jsonl", **options) -> str:
    log = AuditLog(tmp_path / "a.jsonl")
    for record in records:
        log.round(record)
    return audit_page(read_trail(log.path), title=title, **options)


def test_the_page_stands_alone_and_runs_nothing_but_its_own_script(tmp_path):
    hostile = "array '<script>alert(1)</script>' & \"quotes\""
    page = Page(page_of(tmp_path, round_record(1), round_record(2, reason=hostile), title="<script>"))
    scripts = [data for kind, data in page.inside if kind == "script"]
    assert len(scripts) == 2
    (style,) = [data for kind, data in page.inside if kind == "style"]
    assert not any({"src", "onclick", "style"} & attributes.keys() for _, attributes in page.tags)
    assert [attributes["href"] for _, attributes in page.tags if "href" in attributes] == ["#clients"]
    (policy,) = [a["content"] for _, a in page.tags if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; ")
    assert f"script-src '{content_hash(scripts[1])}'" in policy
    assert f"style-src '{content_hash(style)}'" in policy
    assert "connect-src" not in policy


def test_every_reply_is_on_it(tmp_path):
    data = Page(page_of(tmp_path, round_record(1), round_record(3))).data
    assert data["rounds"]["number"] == [1, 3]
    assert data["clients"]["name"] == ["3", "1", "2"]
    found = data["columns"]
    assert list(found["round"]) == [0, 0, 0, 1, 1, 1]
    assert list(found["client"]) == [1, 2, 0] * 2
    assert list(found["state"]) == [columns.KEPT, columns.KEPT, columns.DROPPED] * 2
    assert list(found["claim"]) == [10, 20, 30] * 2
    assert [data["texts"][at] for at in found["reason"]] == ["", "", "score 3 is past the cut 2"] * 2
    assert list(found["weight"]) == [0.5, 0.5, 0] * 2


def test_a_skipped_round_drops_nobody_and_has_a_note(tmp_path):
    text = page_of(tmp_path, round_record(1, note="too few clients"))
    assert set(Page(text).data["columns"]["state"]) == {columns.SKIPPED}
    assert "round 1 (train): too few clients" in text
    assert '<div class="tile failed"><b>1</b> rounds skipped</div>' in text


def test_rounds_that_are_missing_are_counted_and_named(tmp_path):
    text = page_of(tmp_path, round_record(1), round_record(4), round_record(5))
    assert '<div class="tile failed"><b>2</b> rounds without a line</div>' in text
    assert "2 training rounds have no line: rounds 2 to 3 (run 7)" in text


def test_warnings_are_on_the_page_latest_first(tmp_path):
    text = page_of(tmp_path, round_record(1, warnings=("first",)), round_record(2, warnings=("second",)))
    assert "<summary>Warnings: 2</summary>" in text
    assert text.index("round 2: second") < text.index("round 1: first")
    data = Page(text).data
    assert [[data["texts"][at] for at in round_] for round_ in data["rounds"]["warnings"]] == [["first"], ["second"]]


def test_more_replies_than_a_browser_shows_are_left_out_and_it_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(columns, "MOST_REPLIES", 4)
    text = page_of(tmp_path, round_record(1, clients=5), round_record(2, clients=5))
    assert "the first 6 replies are not on this page" in text
    assert len(Page(text).data["columns"]["round"]) == 4
    assert Page(text).data["clients"]["replies"] == [2] * 5


def test_reasons_without_end_are_left_in_the_trail(tmp_path, monkeypatch):
    records = [round_record(number, reason=f"{number} " + "x" * 40) for number in range(1, 5)]
    monkeypatch.setattr(columns, "MOST_REASON_LETTERS", 60)
    data = Page(page_of(tmp_path, *records)).data
    reasons = [data["texts"][at] for at in data["columns"]["reason"]]
    assert reasons.count("(this page has no room for the reason: it is in the trail)") >= 2


def test_a_page_that_follows_may_ask_its_server_and_nobody_else(tmp_path):
    text = page_of(tmp_path, round_record(1), live="abc")
    assert "; connect-src 'self'" in text
    assert '<meta name="fedra-version" content="abc">' in text


def test_an_empty_trail_is_a_page(tmp_path):
    assert "no round has ended yet" in page_of(tmp_path)
