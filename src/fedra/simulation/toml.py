"""Settings as TOML: reading a file of them, and writing those of a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedra.untrusted import MEBIBYTE, parsed_toml, read_bounded

_LARGEST_FILE = MEBIBYTE


def read_toml(path: Path, what: str = "configuration") -> dict[str, Any]:
    """Return the settings of a TOML file, hyphens in keys being the same as underscores; `what` the file describes."""
    try:
        content = read_bounded(path, _LARGEST_FILE, "name a file of settings")
    except FileNotFoundError:
        raise ValueError(f"there is no {what} file {path}; check the path") from None
    try:
        values = parsed_toml(content)
    except ValueError as error:
        raise ValueError(f"{path} is not valid TOML: {error}") from error
    try:
        return underscored(values)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def underscored(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table with underscores for the hyphens of its keys; one setting in both spellings is an error."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        name = key.replace("-", "_")
        if name in found:
            raise ValueError(f"{name!r} is given twice, with hyphens and with underscores; give it once")
        found[name] = value
    return found


def toml_text(settings: Mapping[str, Any]) -> str:
    """Return settings as TOML; what is None is left out, since TOML has no such value."""
    import tomli_w

    return tomli_w.dumps({key: value for key, value in settings.items() if value is not None})
