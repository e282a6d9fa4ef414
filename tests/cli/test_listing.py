from __future__ import annotations

import io

import pytest
from rich.console import Console
from typer.testing import CliRunner

from fedra import RULES
from fedra.attacks import ATTACKS
from fedra.cli import app, listing


def printed(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, result.output
    return result.stdout


def line_of(name: str, text: str) -> str:
    (line,) = (line for line in text.splitlines() if line.split()[:1] == [name])
    return line


def test_rules_are_listed_with_family_and_parameters() -> None:
    text = printed("rules")
    for name, rule in RULES.items():
        assert rule.family in line_of(name, text)
    assert "gamma=0.1" in line_of("fedra", text)
    assert "Σ_i q^i g^i / Σ_i q^i" in line_of("fedavg", text)


@pytest.mark.parametrize("width", [60, 80])
def test_on_a_terminal_each_parameter_has_its_line(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    text = io.StringIO()
    monkeypatch.setattr(listing, "console", Console(file=text, width=width, force_terminal=True, color_system=None))
    listing.rules()
    lines = text.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert "      gamma=0.1" in [line.rstrip() for line in lines]
    assert all(f"{name}  {rule.family}" in [line.rstrip() for line in lines] for name, rule in RULES.items())


def test_attacks_are_listed_with_parameters() -> None:
    text = printed("attacks")
    for name in ATTACKS:
        line_of(name, text)
    assert "z=1.5" in line_of("lie", text)
    assert "--alpha-q" in text


@pytest.mark.parametrize("command", ["rules", "attacks"])
def test_formulas_are_readable_without_latex(command: str) -> None:
    text = printed(command)
    assert not any(mark in text for mark in ("\\", "math", "frac", "operatorname", "`"))
