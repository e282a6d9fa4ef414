"""Settings of one run from several places: the nearer place wins, also over what cannot stand beside what it says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedra.data import NATURAL, is_owner_file, states_numbers

# Who is malicious is said in one of these ways.
WHO_IS_MALICIOUS = ("malicious_ratio", "num_malicious", "malicious")


def overridden(farther: Mapping[str, Any], nearer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of both places, the nearer one's where they contradict each other.

    One place that contradicts itself stays as it is, so that a configuration made of it is an error.
    """
    kept = dict(farther)
    stated = {key for key, value in nearer.items() if value is not None}
    if stated & set(WHO_IS_MALICIOUS):
        _drop(kept, *WHO_IS_MALICIOUS)
    if "partition" in stated:
        if _is_held(nearer["partition"]):
            _drop(kept, "quantities", "num_clients")
        if nearer["partition"] != NATURAL:
            _drop(kept, "client_key")
    elif "quantities" in stated and _is_held(kept.get("partition")):
        _drop(kept, "partition", "client_key")
    if "quantities" in stated and states_numbers(nearer["quantities"]):
        _drop(kept, "num_clients")
    if "dataset" in stated and kept.get("dataset") != nearer["dataset"]:
        _drop(kept, "dataset_params")
    return {**kept, **nearer}


def _drop(settings: dict[str, Any], *names: str) -> None:
    for name in names:
        settings.pop(name, None)


def _is_held(partition: Any) -> bool:
    """Whether clients have what they hold, so that quantities cannot be stated."""
    return isinstance(partition, str) and (partition == NATURAL or is_owner_file(partition))
