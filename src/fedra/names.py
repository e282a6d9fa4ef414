"""Finding things by name: helping with names that were not quite right, and importing a user's own code."""

from __future__ import annotations

import importlib
import inspect
import sys
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
