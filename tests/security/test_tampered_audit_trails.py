"""An attacker writes whatever they like into an audit trail.

For any bytes `fedra audit` ends, with what can be read and how many lines cannot, or with a line that names the file;
and nothing of what it shows is obeyed by a terminal or a browser.
"""

from __future__ import annotations

import json
import unicodedata

import numpy as np
import pytest
import typer
from tests.audit.pages import Page
from tests.audit.records import round_record
from tests.security.mutations import DAMAGES, copied, files_of, json_text, with_value, within
from typer.testing import CliRunner

from fedra.audit import AuditLog, read_trail, reading, summarise, summary_text
from fedra.audit.command import audit
from fedra.audit.page import audit_page
from fedra.cli import app
from fedra.cli.console import errors_reported

FUZZED = 300
CLIENT = {
    "kind": "client",
    "run": "7",
    "round": 1,
    "phase": "train",
    "client": 1,
    "usable": True,
    "kept": False,
    "reason": "a score past the cut",
    "claimed_quantity": 10.0,
    "score": 1.0,
    "weight": 0.0,
}
ROUND = {
    "kind": "round",
    "run": "7",
    "round": 1,
    "phase": "train",
    "rule": "fedra",
    "kept": 1,
    "rejected": 1,
    "note": "",
    "num_malicious": 1,
}


def shown(path, tmp_path):
    """Call the command, and return its text and its page."""
    with within(60):
        told = CliRunner().invoke(app, ["audit", str(path), "--html", str(tmp_path / "page.html")])
    assert told.exit_code == 0, told.output + repr(told.exception)
    return told.stdout, (tmp_path / "page.html").read_text(encoding="utf-8")


def assert_harmless(text, page):
    for each in (text, page):
        assert not [c for c in each if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
    assert page.count("<script") == 2
    assert "<img" not in page


UNREADABLE = {
    "a claim of 400 digits": {"claimed_quantity": 10**400},
    "a claim without end": {"claimed_quantity": float("inf")},
    "a claim that is no number": {"claimed_quantity": float("nan")},
    "a score of 400 digits": {"score": 10**400},
    "a run that is a list": {"run": []},
    "a round that is a list": {"round": [1]},
    "a round below zero": {"round": -1},
    "a phase that is a table": {"phase": {}},
    "a client that is a list": {"client": [1]},
    "a claim too deep": {"claimed_quantity": "@deep@"},
    "kept as a text": {"kept": "no"},
}


@pytest.mark.parametrize("change", UNREADABLE.values(), ids=UNREADABLE)
def test_a_senseless_line_is_counted_and_the_others_are_read(tmp_path, change):
    lines = [CLIENT, {**CLIENT, "client": 2}, {**CLIENT, "client": 3, **change}, ROUND]
    (tmp_path / "a.jsonl").write_text("".join(f"{json_text(line)}\n" for line in lines), encoding="utf-8")
    text, page = shown(tmp_path / "a.jsonl", tmp_path)
    assert "1 line could not be read" in text
    assert "1 line could not be read" in page
    assert [summary.client for summary in summarise(read_trail(tmp_path / "a.jsonl"))] == ["1", "2"]


@pytest.mark.parametrize("change", [{"round": []}, {"kept": "@deep@"}, {"lines_lost": 10**30}, {"num_malicious": {}}])
def test_a_senseless_round_is_counted(tmp_path, change):
    lines = [CLIENT, ROUND, {**ROUND, "round": 2, **change}]
    (tmp_path / "a.jsonl").write_text("".join(f"{json_text(line)}\n" for line in lines), encoding="utf-8")
    text, _ = shown(tmp_path / "a.jsonl", tmp_path)
    assert text.startswith("1 training round of 1 run, 0 skipped\n1 line could not be read")


TEXTS = {
    "colours and a title": "\x1b[31mred\x1b]0;owned\x07",
    "the cursor up": "\x1b[2A\r\x08",
    "letters from right to left": "\u202etxt.exe\u2066",
    "half a letter": "\ud800",
    "lines of one's own": "kept\n\nclient  replies\x85\u2028",
    "markup and a script": "\x1b[1m[red]x[/red]<script>alert(1)</script><img src=x onerror=alert(1)>\"'",
    "a long one": "x" * 100_000,
}


@pytest.mark.parametrize("field", ["client", "reason", "run"])
@pytest.mark.parametrize("hostile", TEXTS.values(), ids=TEXTS)
def test_texts_are_shown_harmlessly(tmp_path, field, hostile):
    lines = [{**CLIENT, field: hostile}, {**ROUND, "rule": hostile}, {**ROUND, "round": 2, "note": hostile}]
    lines[2]["run"] = hostile
    (tmp_path / "a.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    text, page = shown(tmp_path / "a.jsonl", tmp_path)
    assert_harmless(text, page)
    assert "could not be read" not in text
    assert len(text.splitlines()) == 7
    assert max(map(len, text.splitlines())) < 1000
    assert "<img" not in page


def test_a_line_without_end_is_one_unreadable_line_and_costs_no_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "LONGEST_LINE", 1000)
    long = {**CLIENT, "reason": "x" * 5000}
    lines = [CLIENT, long, {**CLIENT, "round": 2}, "[" * 100_000, {**CLIENT, "round": 3}]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in lines))
    trail = read_trail(path)
    assert [record["round"] for record in trail.clients] == [1, 2, 3]
    assert trail.unreadable == 2
    with path.open("a") as file:
        file.write("x" * 5000)
    assert read_trail(path).unreadable == 3


def test_of_a_trail_without_end_the_latest_lines_are_read(tmp_path, monkeypatch):
    line = len(json.dumps(CLIENT)) + 1
    monkeypatch.setattr(reading, "MOST_BYTES", 12 * line + 5)
    for name in ("a.jsonl.1", "a.jsonl.2", "a.jsonl"):
        (tmp_path / name).write_text("".join(json.dumps(CLIENT) + "\n" for _ in range(5)))
    trail = read_trail(tmp_path / "a.jsonl")
    assert len(trail.clients) == 12
    assert trail.unreadable == 0
    assert trail.skipped_bytes == 3 * line - 5
    assert f"the first {3 * line - 5:,} bytes were skipped" in summary_text(trail)


def test_a_page_has_no_more_replies_than_a_browser_shows(tmp_path, monkeypatch):
    lines = [{**CLIENT, "client": client, "round": number} for number in range(1, 6) for client in range(50)]
    lines += [{**ROUND, "round": number} for number in range(1, 6)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    monkeypatch.setattr("fedra.audit.page.columns.MOST_REPLIES", 100)
    page = audit_page(read_trail(tmp_path / "a.jsonl"), title="a")
    assert len(Page(page).data["columns"]["state"]) == 100
    assert "the first 150 replies are not on this page" in page


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        *(("a.jsonl", damage) for damage in ("a pipe", "a device", "a link to nowhere")),
        *(("a.jsonl.1", damage) for damage in ("a pipe", "a device")),
    ],
)
def test_what_is_no_file_is_told(tmp_path, name, damage):
    for each in ("a.jsonl", "a.jsonl.1"):
        AuditLog(tmp_path / each).round(round_record(1))
    DAMAGES[damage](tmp_path / name, None)
    with within(60):
        told = CliRunner().invoke(app, ["audit", str(tmp_path / "a.jsonl")])
    assert told.exit_code == 2, told.output + repr(told.exception)
    assert str(tmp_path / name) in told.stderr.replace("\n", "")


def test_any_bytes_end_in_a_summary_or_in_a_line(tmp_path, capsys):
    rng = np.random.default_rng(0)
    log = AuditLog(tmp_path / "base" / "a.jsonl", max_bytes=1500)
    for number in range(1, 9):
        log.round(round_record(number, note="too few replies" if number == 4 else ""))
    seen = {"read": 0, "told": 0}
    for number in range(FUZZED):
        folder = copied(tmp_path / "base", tmp_path / "work")
        file = (files := files_of(folder))[rng.integers(len(files))]
        if rng.integers(3):
            lines = file.read_text(encoding="utf-8").splitlines()
            at = rng.integers(len(lines))
            lines[at] = what = json_text(with_value(json.loads(lines[at]), rng))
            file.write_text("\n".join(lines), encoding="utf-8")
        else:
            what = list(DAMAGES)[rng.integers(len(DAMAGES))]
            if what.startswith("50 GiB"):
                continue
            DAMAGES[what](file, rng)
        try:
            with within(60), errors_reported():
                text = audit(folder / "a.jsonl", tmp_path / "page.html")
        except typer.Exit:
            assert str(file) in capsys.readouterr().err.replace("\n", ""), f"number {number}: {what[:300]}"
            seen["told"] += 1
        except BaseException as error:
            raise AssertionError(f"number {number}: {what[:300]}") from error
        else:
            assert_harmless(text, (tmp_path / "page.html").read_text(encoding="utf-8"))
            seen["read"] += 1
    assert min(seen.values()) > 20
