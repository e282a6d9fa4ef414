from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import fedra
from fedra import RULES
from fedra.attacks import ATTACKS
from fedra.cli import app
from fedra.data import DATASETS


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


def test_data_sets_are_listed_with_what_to_do(tmp_path: Path) -> None:
    text = printed("data", "--data-dir", str(tmp_path))
    for name in DATASETS:
        line_of(name, text)
    assert "ready" in line_of("digits", text)
    assert f"fedra data get mnist --data-dir {tmp_path}" in line_of("mnist", text)


def test_data_without_a_place_to_put_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FEDRA_DATA", raising=False)
    result = CliRunner().invoke(app, ["data", "get", "mnist"])
    assert result.exit_code == 2
    assert "no data directory; give --data-dir DIR, or set FEDRA_DATA" in result.stderr


def test_data_that_cannot_be_downloaded(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["data", "get", "minst", "--data-dir", str(tmp_path)])
    assert result.exit_code == 2
    assert "mnist" in result.stderr


def test_the_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fedra", "--help"], capture_output=True, text=True, check=False, env=None
    )
    assert done.returncode == 0, done.stderr
    for command in ("run", "demo", "rules", "attacks", "data"):
        assert f" {command} " in done.stdout
    assert fedra.__doc__ is not None
