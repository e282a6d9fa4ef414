"""Parameters given on the command line as NAME=VALUE."""

from __future__ import annotations

import tomllib
from typing import Any


def parsed(text: str, option: str) -> tuple[str, Any]:
    """Read NAME=VALUE, the value as TOML where it is that, else as text; `option` is where it was given."""
    name, equals, given = text.partition("=")
    if not equals or not name:
        raise ValueError(f"{option} {text!r} is not of the form NAME=VALUE")
    try:
        value = tomllib.loads(f"value = {given}")["value"]
    except tomllib.TOMLDecodeError:
        value = given
    return name.strip().replace("-", "_"), value
