"""A federation's part in a grid: entries of the lists, and settings that all their cells have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedra.data import DATASETS, is_owner_file, owner_file_path, pinned_owner_file
from fedra.simulation import SimulationConfig, federation_of


@dataclass(frozen=True, kw_only=True)
class FederationPart:
    """What a federation says: lists of a grid by axis, and settings that are no axis of it."""

    lists: Mapping[str, list[Any]]
    settings: Mapping[str, Any]


def federation_part(value: Any, source: Path | None, *, trust: bool) -> FederationPart | None:
    """Return the part of a federation that a grid's file has or names; None where there is none.

    A federation with a name stands in the tables as a data set of that name, beside others of the same data.

    Args:
        value: the table, the path of a file with one, or None.
        source: the grid's file.
        trust: whether a data set of one's own may be imported.
    """
    if value is None:
        return None
    settings = federation_of(value, source, trust=trust)
    lists: dict[str, list[Any]] = {}
    name, dataset = settings.pop("name", None), settings.pop("dataset", None)
    parameters = settings.pop("dataset_params", None)
    if dataset is not None or name is not None or parameters is not None:
        entry: dict[str, Any] = {"dataset": SimulationConfig.dataset if dataset is None else dataset}
        if parameters is not None:
            entry["params"] = parameters
        if name is not None:
            known = DATASETS.get(str(entry["dataset"]))
            entry["label"] = f"{known.label if known else entry['dataset']} ({name})"
        lists["datasets"] = [entry if len(entry) > 1 else entry["dataset"]]
    if "partition" in settings:
        held = settings.pop("partition")
        if isinstance(held, str) and is_owner_file(held):
            # Its checksum is taken once, not for each cell.
            held = {"partition": pinned_owner_file(held), "label": owner_file_path(held).name}
        lists["partitions"] = [held]
    if "setting" in settings:
        lists["settings"] = [settings.pop("setting")]
    return FederationPart(lists=lists, settings=settings)
