"""docs/nvflare.md: its snippets run, in order, in an empty directory, and what it says about few clients is so."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from fedra import Concord, make_rule
from fedra.nvflare import RobustAggregator
from fedra.nvflare.recipe import members

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "nvflare.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)


def test_every_snippet_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    python = [text for language, text in SNIPPETS if language == "python"]
    files = {match[1]: text for text in python if (match := re.match(r"# ([\w.]+)\n", text))}
    assert set(files) == {"client.py", "plotting.py"}
    for name, text in files.items():
        Path(name).write_text(text, encoding="utf-8")
        compile(text, name, "exec")
    names: dict[str, Any] = {}
    made = []
    for text in python:
        if text not in files.values():
            exec(text, names)
            made.append(names.get("aggregator"))
    assert made[1].rule == Concord(malicious_ratio=0.2)
    assert made[2].rule == "median"
    assert [observer.path_of_file for observer in members(made[-1].observers)] == [
        "/var/fedra/a.txt",
        "/var/fedra/b.txt",
    ]
    names["recipe"].export(str(tmp_path / "jobs"))
    config = json.loads((tmp_path / "jobs" / "digits" / "app" / "config" / "config_fed_server.json").read_text())
    written = config["workflows"][0]["args"]["aggregator"]
    assert written["path"] == "fedra.nvflare.aggregator.RobustAggregator"
    assert written["args"] == {"audit": "{WORKSPACE}/audit-{JOB_ID}.jsonl"}


def test_the_options_on_the_page_are_all_options_with_their_defaults() -> None:
    snippet = next(text for _, text in SNIPPETS if "All options" not in text and "warn_at=" in text)
    named = set(re.findall(r"^    (\w+)=", snippet, re.MULTILINE))
    defaults = RobustAggregator.__init__.__kwdefaults__
    assert named == set(defaults)
    assert f'quantity_key="{defaults["quantity_key"]}"' in snippet
    assert f'on_disk_error="{defaults["on_disk_error"]}"' in snippet


@pytest.mark.parametrize("rule", ["concord", "fedra", "krum", "multi-krum"])
def test_three_and_four_clients_are_too_few(rule: str) -> None:
    assert all(make_rule(rule).refusal(n) for n in (3, 4))
    assert not make_rule(rule).refusal(5)
    assert not Concord(clamp=True).refusal(3)
    assert not make_rule("median").refusal(3)


def test_what_is_installed_is_there_to_install() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    (line,) = (text for language, text in SNIPPETS if language == "sh")
    assert re.fullmatch(r'pip install "fedra\[(\w+)\]"\n', line)[1] in extras  # type: ignore[index]
    assert "nvflare" in extras["all"][0]
