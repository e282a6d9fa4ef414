"""The command as a whole."""

from __future__ import annotations

import subprocess
import sys

from typer.testing import CliRunner

import fedra
from fedra.cli import app


def test_the_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fedra", "--help"], capture_output=True, text=True, check=False, env=None
    )
    assert done.returncode == 0, done.stderr
    for command in ("run", "demo", "rules", "attacks", "data"):
        assert f" {command} " in done.stdout
    assert fedra.__doc__ is not None


def test_the_version() -> None:
    done = CliRunner().invoke(app, ["--version"])
    assert (done.exit_code, done.stdout) == (0, f"fedra {fedra.__version__}\n")


def test_the_nearest_command_is_named_once() -> None:
    done = CliRunner().invoke(app, ["rnu"])
    assert done.exit_code == 2
    assert done.stderr.count("Did you mean") == 1


def test_listing_rules_imports_no_torch() -> None:
    code = "import sys; from fedra.cli import app; assert not {'torch', 'pandas', 'matplotlib'} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
