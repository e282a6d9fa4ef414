"""The modules that build the site, which are no package."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]


def site_module(name: str) -> ModuleType:
    """Return a module of docs/_site."""
    spec = importlib.util.spec_from_file_location(f"site_{name}", ROOT / "docs" / "_site" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
