"""The command that repeats a run, from its configuration."""

from __future__ import annotations

import json
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from typing import Any

from fedra.simulation import SimulationConfig

# Where somebody's data lie is nobody else's business, and does not change how a run ends.
_LEFT_OUT = ("data_dir",)


def repeating_command(config: Mapping[str, Any]) -> str:
    """Return `fedra run` with a flag for each setting that is not the default, quoted for a POSIX shell."""
    return shlex.join(["fedra", "run", *_flags(config)])


def _flags(config: Mapping[str, Any]) -> Iterator[str]:
    for known in fields(SimulationConfig):
        default = known.default_factory() if known.default_factory is not MISSING else known.default
        value = config.get(known.name, default)
        if known.name in _LEFT_OUT or value is None or value == default:
            continue
        flag = "--" + known.name.replace("_", "-")
        if isinstance(value, Mapping):
            for name, item in value.items():
                yield from (flag.removesuffix("s"), f"{name}={_unambiguous(item)}")
        else:
            # With "=", a value that begins with a hyphen is not taken for a flag.
            text = str(value).removesuffix(".0") if isinstance(value, float) else str(value)
            yield from ((f"{flag}={text}",) if text.startswith("-") else (flag, text))


def _unambiguous(value: Any) -> str:
    """Return a parameter as `fedra run` reads it: TOML, or a bare text that is no TOML."""
    if isinstance(value, str):
        try:
            tomllib.loads(f"value = {value}")
        except tomllib.TOMLDecodeError:
            return value
    return _toml(value)


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_toml(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, bool | str):
        # JSON but for the one control character that TOML wants escaped and JSON does not.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)
