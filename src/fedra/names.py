"""Finding things by name: names that were not quite right, names with parameters, and a user's own code."""

from __future__ import annotations

import importlib
import inspect
import shlex
import sys
import tomllib
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any


def nearest(name: str, valid: Iterable[str]) -> str:
    """Return the end of an error message: the nearest valid name, if one is near, and all valid ones."""
    names = list(valid)
    close = get_close_matches(name, names, n=1)
    guess = f"; did you mean {close[0]!r}?" if close else ";"
    return f"{guess} valid: {', '.join(names) or 'none'}"


def parse_parameter(text: str, where: str) -> tuple[str, Any]:
    """Read NAME=VALUE, the value as TOML where it is that, else as text; `where` begins the error message."""
    name, equals, given = text.partition("=")
    if not equals or not name:
        raise ValueError(f"{where} {text!r} is not of the form NAME=VALUE")
    try:
        value = tomllib.loads(f"value = {given}")["value"]
    except tomllib.TOMLDecodeError:
        value = given
    return name.strip().replace("-", "_"), value


def parse_spec(text: str, where: str, form: str) -> tuple[str, dict[str, Any]]:
    """Read a name with parameters after it, NAME=VALUE, as a shell would take the words apart.

    `where` begins an error message, and `form` ends it with what to write.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ValueError(f"{where} {text!r}: {error}; {form}") from error
    if not words:
        raise ValueError(f"{where} {text!r} has no name; {form}")
    parameters: dict[str, Any] = {}
    for word in words[1:]:
        name, value = parse_parameter(word, f"{where} {words[0]}:")
        if name in parameters:
            raise ValueError(f"{where} {text!r} gives {name} twice; give it once")
        parameters[name] = value
    return words[0], parameters


def parameters_of(function: Any) -> dict[str, inspect.Parameter]:
    """Return the parameters that something takes when it is called; none where it cannot be, or does not tell."""
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return {}


def import_own(name: str, kind: str) -> Any:
    """Return what stands at ``module:attribute``, a user's own rule, attack, model or data set.

    It may be anything: look at what it is before calling it.
    """
    module_name, _, attribute = name.partition(":")
    if not all(part.isidentifier() for part in (*module_name.split("."), attribute)):
        raise ValueError(f"{kind} {name!r} is not of the form module:name, for instance my_package.{kind}s:mine")
    # A console script, unlike `python -m`, does not look for modules in the directory it is called from.
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if not f"{module_name}.".startswith(f"{error.name}."):
            raise  # The module is there, and one that it imports is missing.
        raise ValueError(
            f"{kind} {name!r}: there is no module {module_name!r}; run from its directory or add that to PYTHONPATH"
        ) from error
    if not hasattr(module, attribute):
        public = [key for key in vars(module) if not key.startswith("_")]
        raise ValueError(f"{kind} {name!r}: {module_name!r} has no {attribute!r}{nearest(attribute, public)}")
    return getattr(module, attribute)
