"""Settings as TOML: reading a file of them, and writing those of a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedra.untrusted import MEBIBYTE, parsed_toml, read_bounded

_LARGEST_FILE = MEBIBYTE


def read_toml(path: Path) -> dict[str, Any]:
    """Return the settings of a TOML file, hyphens in keys being the same as underscores."""
    try:
        content = read_bounded(path, _LARGEST_FILE)
    except FileNotFoundError:
        raise ValueError(f"there is no configuration file {path}") from None
    try:
        values = parsed_toml(content)
    except ValueError as error:
        raise ValueError(f"{path} is not valid TOML: {error}") from error
    return {key.replace("-", "_"): value for key, value in values.items()}


def toml_text(settings: Mapping[str, Any]) -> str:
    """Return settings as TOML; what is None is left out, since TOML has no such value."""
    import tomli_w

    return tomli_w.dumps({key: value for key, value in settings.items() if value is not None})
