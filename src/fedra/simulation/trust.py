"""Code that a file names: imported only where somebody stands for the file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fedra.attacks import ATTACKS
from fedra.data import DATASETS
from fedra.models import MODELS
from fedra.rules import RULES

_REGISTRIES: dict[str, Iterable[str]] = {"dataset": DATASETS, "model": MODELS, "rule": RULES, "attack": ATTACKS}


def own_code(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return those settings of a run that name code to import, as module:name, and nothing that fedra has."""
    given = {key: settings.get(key) for key in _REGISTRIES}
    return {
        key: value
        for key, value in given.items()
        if isinstance(value, str) and ":" in value and value not in _REGISTRIES[key]
    }


def check_trusted(settings: Mapping[str, Any], source: Path | str) -> None:
    """Raise where settings that come from `source`, for which nobody stands, name code to import."""
    if named := own_code(settings):
        listed = ", ".join(f"{key} = {value!r}" for key, value in named.items())
        raise ValueError(
            f"{source} has {listed}: code that would be imported and run; look at it, and if you trust it add --trust "
            "(in Python, trust=True)"
        )
