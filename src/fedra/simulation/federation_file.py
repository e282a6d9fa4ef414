"""A federation as one TOML table: read from a file, or taken from the file that holds or names it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedra import checks
from fedra.data import is_owner_file, quantities_text
from fedra.names import nearest
from fedra.simulation.toml import read_toml, underscored
from fedra.simulation.trust import check_trusted

# The settings of a run that describe who takes part, in the order in which people think of them.
FEDERATION_SETTINGS = (
    "dataset",
    "dataset_params",
    "partition",
    "client_key",
    "partition_seed",
    "dirichlet_alpha",
    "num_clients",
    "quantities",
    "max_quantity",
    "setting",
    "num_sampled",
    "malicious_ratio",
    "num_malicious",
    "malicious",
    "assumed_ratio",
)
_NAME = "name"
_LONGEST_NAME = 60


def read_federation(path: Path, *, trust: bool = False) -> dict[str, Any]:
    """Return the settings of a federation's file, with its `name` where it has one.

    Files that it names lie where it lies.

    Args:
        path: the file: the table itself, or a file with the table under `[federation]` and nothing else.
        trust: whether a data set of one's own that it names as module:function may be imported; else that is an error.
    """
    values = read_toml(path, what="federation")
    if values.keys() == {"federation"}:
        values = dict(checks.table(f"federation of {path}", values["federation"]))
    try:
        settings = federation_settings(values, path.parent)
    except (ValueError, TypeError) as error:
        raise type(error)(f"{path}: {error}") from error
    if not trust:
        check_trusted(settings, path)
    return settings


def federation_of(value: Any, source: Path | None, *, trust: bool = False) -> dict[str, Any]:
    """Return the settings of a federation that another file has as a table, or names as a file beside it.

    Args:
        value: the table, or the path of a federation's file.
        source: the other file; None: there is none, and paths are as they are.
        trust: as in `read_federation`.
    """
    folder = Path() if source is None else source.parent
    if isinstance(value, str):
        return read_federation(folder / checks.path("federation", value), trust=trust)
    if not isinstance(value, Mapping):
        raise TypeError(checks.wrong("federation", value, "a table of settings, or the path of a file with one"))
    settings = federation_settings(value, folder)
    if not trust and source is not None:
        check_trusted(settings, source)
    return settings


def federation_settings(values: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the settings of a federation's table as those of a run; files lie in `folder`."""
    found = underscored(values)
    for key in found:
        if key not in (_NAME, *FEDERATION_SETTINGS):
            raise ValueError(f"a federation has no {key!r}{nearest(key, (_NAME, *FEDERATION_SETTINGS))}")
    if _NAME in found:
        name = checks.text(_NAME, found[_NAME])
        if not name.strip() or len(name) > _LONGEST_NAME or not name.isprintable():
            raise ValueError(checks.wrong(_NAME, name, f"1 to {_LONGEST_NAME} characters on one line"))
    if found.get("quantities") is not None:
        found["quantities"] = quantities_text(found["quantities"])
    for key in ("quantities", "partition"):
        text = found.get(key)
        if isinstance(text, str) and is_owner_file(text.strip()):
            found[key] = str(folder / text.strip())
    return found
