"""How the paper's tables are run, as values: the paper's own protocol and a quick one."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Any

from fedra.data import PARTITIONS, default_learning_rate
from fedra.names import nearest
from fedra.simulation import SimulationConfig

# What may differ from run to run of one protocol, and what does not change how a run ends.
_CHOSEN = (
    "dataset",
    "partition",
    "setting",
    "rule",
    "rule_params",
    "before",
    "before_params",
    "attack",
    "attack_params",
    "alpha_q",
    "seed",
)
_WITHOUT_EFFECT = ("data_dir", "checkpoint_every", "eval_every", "threads")

_DEFAULTS: dict[str, Any] = {
    known.name: {} if known.name.endswith("_params") else known.default for known in fields(SimulationConfig)
}


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

    def fits(self, config: Mapping[str, Any], *, longer: bool = False) -> bool:
        """Whether a run's settings are this protocol's, whatever its rule, attack and seed.

        Args:
            config: the run's settings; those left out are defaults.
            longer: whether a run that goes on for more rounds fits as well.
        """
        dataset, partition = (
            config.get("dataset", _DEFAULTS["dataset"]),
            config.get("partition", _DEFAULTS["partition"]),
        )
        if dataset not in self.datasets or not set(config) <= set(_DEFAULTS):
            return False
        wanted = {**_DEFAULTS, **self.settings(str(dataset), str(partition))}
        found = {**_DEFAULTS, **config}
        if longer and found["rounds"] > wanted["rounds"]:
            wanted["rounds"] = found["rounds"]
        for values in (wanted, found):
            values["lr"] = default_learning_rate(str(dataset)) if values["lr"] is None else values["lr"]
        return all(found[name] == wanted[name] for name in _DEFAULTS if name not in (*_CHOSEN, *_WITHOUT_EFFECT))


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

    def fits(self, config: Mapping[str, Any], *, longer: bool = False) -> bool:
        """Whether a run's settings are those of any protocol; see `Protocol.fits`."""
        return any(protocol.fits(config, longer=longer) for protocol in self.by_name.values())


@cache
def read_protocols() -> Protocols:
    """Return the protocols, from protocols.toml."""
    values = tomllib.loads(files("fedra.paper").joinpath("protocols.toml").read_text(encoding="utf-8"))
    protocols = {
        name: Protocol(name=name, alpha_q=tuple(map(float, given["alpha_q"])), datasets=given["datasets"])
        for name, given in values["protocols"].items()
    }
    return Protocols(by_name=protocols, stands_for=values["stands_for"])
