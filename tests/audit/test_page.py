from __future__ import annotations

from html.parser import HTMLParser

from tests.audit.records import round_record

from fedra.audit import AuditLog, read_trail
from fedra.audit import page as module
from fedra.audit.page import audit_page


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))


def page_of(tmp_path, *records, title: str = "a.jsonl") -> str:
    log = AuditLog(tmp_path / "a.jsonl")
    for record in records:
        log.round(record)
    return audit_page(read_trail(log.path), title=title)


def test_the_page_stands_alone_and_shows_each_round(tmp_path):
    hostile = "array '<script>alert(1)</script>' & \"quotes\""
    text = page_of(tmp_path, round_record(1), round_record(2, reason=hostile), title="<script>")
    page = Page(text)
    assert "<script" not in text
    assert not any({"src", "href"} & attributes.keys() for _, attributes in page.tags)
    marks = [attributes.get("class") for tag, attributes in page.tags if tag == "i"][4:]
    assert marks.count("kept") == 4
    assert marks.count("out") == 2


def test_a_skipped_round_has_no_marks_but_a_note(tmp_path):
    text = page_of(tmp_path, round_record(1, note="too few clients"))
    marks = [attributes.get("class") for tag, attributes in Page(text).tags if tag == "i"][4:]
    assert set(marks) <= {None}
    assert "round 1 (train): too few clients" in text


def test_warnings_are_on_the_page_latest_first(tmp_path):
    text = page_of(tmp_path, round_record(1, warnings=("first",)), round_record(2, warnings=("second",)))
    assert "2 in all" in text
    assert text.index("round 2: second") < text.index("round 1: first")


def test_more_marks_than_a_browser_shows_are_left_out_and_it_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_MOST_MARKS", 2)
    text = page_of(tmp_path, round_record(1, clients=5))
    assert "3 more clients are not shown" in text
