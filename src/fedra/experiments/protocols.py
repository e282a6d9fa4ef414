"""How the paper's tables are run, as values: the paper's own protocol and a quick one."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from fedra.data import PARTITIONS
from fedra.names import nearest


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """The columns of the tables and, for each data set, the settings of its runs."""

    name: str
    alpha_q: tuple[float, ...]
    datasets: Mapping[str, Mapping[str, Any]]

    def settings(self, dataset: str, partition: str) -> dict[str, Any]:
        """Return the settings of runs on a data set, with those that go with the partition."""
        given = self.datasets[dataset]
        return {**{key: value for key, value in given.items() if key not in PARTITIONS}, **given.get(partition, {})}


@dataclass(frozen=True, kw_only=True)
class Protocols:
    """All protocols by name, and which data set takes the place of which one of the paper's."""

    by_name: Mapping[str, Protocol]
    stands_for: Mapping[str, str]

    def named(self, name: str) -> Protocol:
        """Return the protocol of this name."""
        if name not in self.by_name:
            raise ValueError(f"unknown protocol {name!r}{nearest(name, self.by_name)}")
        return self.by_name[name]


@cache
def read_protocols() -> Protocols:
    """Return the protocols, from protocols.toml."""
    values = tomllib.loads(files("fedra.experiments").joinpath("protocols.toml").read_text(encoding="utf-8"))
    protocols = {
        name: Protocol(name=name, alpha_q=tuple(map(float, given["alpha_q"])), datasets=given["datasets"])
        for name, given in values["protocols"].items()
    }
    return Protocols(by_name=protocols, stands_for=values["stands_for"])
