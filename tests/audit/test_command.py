from __future__ import annotations

import subprocess
import sys

from tests.audit.records import round_record
from typer.testing import CliRunner

from fedra.audit import AuditLog
from fedra.audit.command import audit
from fedra.cli import app


def test_the_summary_alone(tmp_path):
    AuditLog(tmp_path / "a.jsonl").round(round_record(1))
    text = audit(tmp_path / "a.jsonl")
    assert "1 training round of 1 run, 0 skipped" in text
    assert "wrote" not in text
    assert [file.name for file in tmp_path.iterdir()] == ["a.jsonl"]


def test_the_page_beside_it(tmp_path):
    AuditLog(tmp_path / "a.jsonl").round(round_record(1))
    done = CliRunner().invoke(app, ["audit", str(tmp_path / "a.jsonl"), "--html", str(tmp_path / "page.html")])
    assert done.exit_code == 0
    assert "wrote" in done.output
    assert "<h1>Audit trail: a.jsonl</h1>" in (tmp_path / "page.html").read_text()


def test_a_missing_file_is_an_error(tmp_path):
    done = CliRunner().invoke(app, ["audit", str(tmp_path / "none.jsonl")])
    assert done.exit_code == 2
    assert "no audit trail" in done.output


def test_the_audit_needs_no_flower():
    code = "import sys; import fedra.audit.command; sys.exit(any(m == 'flwr' or m == 'torch' for m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
