"""The command as a whole."""

from __future__ import annotations

import subprocess
import sys

import fedra


def test_the_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fedra", "--help"], capture_output=True, text=True, check=False, env=None
    )
    assert done.returncode == 0, done.stderr
    for command in ("run", "demo", "rules", "attacks", "data"):
        assert f" {command} " in done.stdout
    assert fedra.__doc__ is not None


def test_listing_rules_imports_no_torch() -> None:
    code = "import sys; from fedra.cli import app; assert not {'torch', 'pandas', 'matplotlib'} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
