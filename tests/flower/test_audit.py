from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from flwr.serverapp.strategy import FedAvg
from tests.flower.bad_replies import BAD
from tests.flower.federation import arrays_of, federation, model, record, reply_to
from typer.testing import CliRunner

from fedra.audit import AuditLog, read_trail, summarise, summary_text
from fedra.audit.command import audit
from fedra.audit.log import record_lines
from fedra.cli import app
from fedra.flower import Guard, RobustStrategy
from fedra.server import RoundRecord
from fedra.server.records import LEFT_OUT


def report(number: int = 1, clients: int = 3, note: str = "", reason: str = "score 3 is past the cut 2") -> RoundRecord:
    return RoundRecord(
        run="7",
        round=number,
        phase="train",
        time=0.0,
        rule="fedra",
        num_malicious=1,
        note=note,
        clients=[
            {
                "client": client,
                "claimed_quantity": 10.0 * client,
                "implied_quantity": 9.5,
                "score": 1.0 + client,
                "cut": 2.0,
                "kept": client != 3,
                "weight": 0.5 if client != 3 else 0.0,
                "reason": "" if client != 3 else reason,
                "usable": True,
            }
            for client in range(1, clients + 1)
        ],
    )


def liar(message):
    sent = arrays_of(message.content["arrays"])
    return reply_to(
        message, {n: (a - 3).astype(a.dtype) for n, a in sent.items()}, {"loss": 0.0, "num-examples": 10**9}
    )


@pytest.mark.parametrize(
    "make", [lambda **o: RobustStrategy(rule="fedra", **o), lambda **o: Guard(FedAvg(), rule="fedra", **o)]
)
def test_every_reply_of_every_round_is_on_record(tmp_path, make):
    path = tmp_path / "deep" / "audit.jsonl"
    reports = []
    strategy = make(audit=path, on_round=reports.append)
    strategy.start(federation(8, node_3=liar, node_4=BAD["nan"][0]), record(model()), num_rounds=3)
    trail = read_trail(path)
    train = [r for r in trail.rounds if r["phase"] == "train"]
    assert [r["round"] for r in train] == [1, 2, 3]
    assert all(r["rule"] == "fedra" and r["run"] == "1" for r in train)
    clients = [c for c in trail.clients if c["phase"] == "train"]
    assert len(clients) == 3 * 8
    for entry in clients:
        assert {"claimed_quantity", "implied_quantity", "score", "cut", "kept", "weight", "reason", "usable"} <= set(
            entry
        )
        if entry["client"] == 3:
            assert not entry["kept"]
            assert entry["usable"]
            assert entry["score"] > entry["cut"]
            assert entry["claimed_quantity"] == 1e9
            assert "claims 1,000,000,000 samples" in entry["reason"] or "claims 1e+09" in entry["reason"]
        elif entry["client"] == 4:
            assert not entry["kept"]
            assert not entry["usable"]
            assert "not finite" in entry["reason"]
    written = [json.loads(line) for line in path.read_text().splitlines()]
    told = [json.loads(line) for each in reports for line in record_lines(each)]
    assert written == told


def test_weights_on_record_add_up(tmp_path):
    strategy = RobustStrategy(rule="fedra", audit=tmp_path / "a.jsonl", fraction_evaluate=0.0)
    strategy.start(federation(7), record(model()), num_rounds=1)
    weights = [c["weight"] for c in read_trail(tmp_path / "a.jsonl").clients]
    assert sum(weights) == pytest.approx(1.0)


def test_one_synced_write_a_round(tmp_path, monkeypatch):
    synced = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (synced.append(handle), real(handle)))
    log = AuditLog(tmp_path / "a.jsonl")
    log.round(report(1))
    log.round(report(2))
    assert len(synced) == 2


def test_rotation_loses_nothing(tmp_path):
    path = tmp_path / "a.jsonl"
    log = AuditLog(path, max_bytes=2000)
    for number in range(1, 61):
        log.round(report(number))
    files = sorted(file.name for file in tmp_path.iterdir())
    assert len(files) > 12
    assert "a.jsonl.12" in files
    assert all(file.stat().st_size < 2000 + 1500 for file in tmp_path.iterdir())
    assert [r["round"] for r in read_trail(path).rounds] == list(range(1, 61))
    with pytest.raises(ValueError, match="max_bytes"):
        AuditLog(path, max_bytes=0)


def test_appending_never_changes_what_was_written(tmp_path):
    path = tmp_path / "a.jsonl"
    AuditLog(path).round(report(1))
    before = path.read_bytes()
    AuditLog(path).round(report(2))
    assert path.read_bytes().startswith(before)


def test_a_line_torn_by_a_crash(tmp_path):
    path = tmp_path / "a.jsonl"
    AuditLog(path).round(report(1))
    with path.open("ab") as file:
        file.write(b'{"kind": "client", "run": "7", "rou')
    AuditLog(path).round(report(2))
    trail = read_trail(path)
    assert trail.unreadable == 1
    assert [r["round"] for r in trail.rounds] == [1, 2]
    assert len(trail.clients) == 6
    assert "1 line could not be read" in summary_text(trail)


def test_summary_says_who_how_often_and_why(tmp_path):
    path = tmp_path / "a.jsonl"
    log = AuditLog(path)
    log.round(report(1))
    log.round(report(2, reason="score 7.25e+03 is past the cut 1,200"))
    log.round(report(3, note="too few clients"))
    first, *others = summarise(read_trail(path))
    assert (first.client, first.replies, first.dropped, first.median_claim) == ("3", 2, 2, 30.0)
    assert first.reasons == (("score 7.25e+03 is past the cut 1,200", 2),)
    assert all(other.dropped == 0 for other in others)
    text = audit(path)
    assert "3 training rounds of 1 run, 1 skipped" in text
    assert "too few clients" in text


def test_evaluation_counts_only_for_faults_of_its_own(tmp_path):
    path = tmp_path / "a.jsonl"
    log = AuditLog(path)
    log.round(report(1))
    for number, reason in enumerate((LEFT_OUT, "metric 'loss' is not finite"), start=1):
        log.round(dataclasses.replace(report(number, reason=reason), phase="evaluate"))
    first = summarise(read_trail(path))[0]
    assert (first.client, first.replies, first.dropped) == ("3", 1, 1)
    assert ("in evaluation: metric 'loss' is not finite", 1) in first.reasons
    assert not any(LEFT_OUT in text for text, _ in first.reasons)


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))


def test_the_page_stands_alone_and_shows_each_round(tmp_path):
    path = tmp_path / "a.jsonl"
    log = AuditLog(path)
    log.round(report(1))
    log.round(report(2, reason="array '<script>alert(1)</script>' & \"quotes\""))
    done = CliRunner().invoke(app, ["audit", str(path), "--html", str(tmp_path / "page.html")])
    assert done.exit_code == 0
    assert "wrote" in done.output
    text = (tmp_path / "page.html").read_text()
    page = Page()
    page.feed(text)
    assert "<script" not in text
    assert not any({"src", "href"} & attributes.keys() for _, attributes in page.tags)
    marks = [attributes.get("class") for tag, attributes in page.tags if tag == "i"][4:]
    assert marks.count("kept") == 4
    assert marks.count("out") == 2


def test_a_missing_file_is_told(tmp_path):
    done = CliRunner().invoke(app, ["audit", str(tmp_path / "none.jsonl")])
    assert done.exit_code == 2
    assert "no audit trail" in done.output


def test_the_audit_needs_no_flower():
    code = "import sys; import fedra.audit.command; sys.exit(any(m == 'flwr' or m == 'torch' for m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_numbers_that_json_has_no_word_for(tmp_path):
    """A client so close that no quantity is too large implies infinity."""
    path = tmp_path / "a.jsonl"
    strategy = RobustStrategy(rule="fedra", audit=path)

    def same(message):
        arrays = {n: (a + np.float32(0.01)).astype(a.dtype) for n, a in arrays_of(message.content["arrays"]).items()}
        return reply_to(message, arrays, {"loss": 0.5, "num-examples": 2})

    strategy.start(federation(8, node_1=same, node_2=same), record(model()), num_rounds=1)
    assert read_trail(path).unreadable == 0
