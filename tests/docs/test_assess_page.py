"""docs/assess.md: its snippet runs, and it describes every key of the JSON and every option."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.assess.samples import assessment

from fedra.assess import USUAL_RULES, assessment_values
from fedra.assess.values import SCHEMA
from fedra.cli import app

PAGE = (Path(__file__).parents[2] / "docs" / "assess.md").read_text(encoding="utf-8")
JSON = PAGE[PAGE.index("## JSON") :]


def keys(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value) | set().union(*map(keys, value.values()))
    return set().union(*map(keys, value)) if isinstance(value, list | tuple) else set()


def test_every_key_is_described() -> None:
    described = set(re.findall(r"`(\w+)`", JSON))
    assert keys(assessment_values(assessment())) <= described
    assert f"new `schema`, which is {SCHEMA}" in JSON


def test_the_schema_is_what_it_was() -> None:
    values = assessment_values(assessment())
    assert list(values) == [
        "schema", "federation", "settings", "colluders", "rules", "recommendation", "assumptions",
    ]  # fmt: skip
    assert list(values["rules"][0]) == [
        "label", "rule", "refusal", "formula", "liar", "adaptive", "outlook", "cost",
    ]  # fmt: skip
    assert list(values["rules"][0]["adaptive"]["found"][0]) == [
        "attackers", "cosine", "displacement", "weight", "has_update", "claim", "direction",
    ]  # fmt: skip
    assert list(values["rules"][0]["outlook"]) == [
        "stands", "turned_at", "stopped_at", "chance", "ever", "turned", "ever_turned",
    ]  # fmt: skip


@pytest.mark.parametrize("rule", USUAL_RULES)
def test_the_usual_rules_are_named(rule: str) -> None:
    assert f"`{rule}`" in PAGE


def test_options_are_on_the_page() -> None:
    command = typer.main.get_command(app).commands["assess"]  # type: ignore[attr-defined]
    flags = {each.opts[0] for each in command.params if each.param_type_name == "option"}
    assert not {flag for flag in flags - {"--help", "--trust", "--quiet"} if f"`{flag}`" not in PAGE}


def test_the_snippet_runs() -> None:
    (snippet,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(snippet, {})
    assert "What one liar gets" in printed.getvalue()
