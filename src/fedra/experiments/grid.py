"""A grid of runs as data: what is compared, what stays fixed, and which cells are one and the same run."""

from __future__ import annotations

import itertools
import numbers
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from fedra.experiments.naming import run_name
from fedra.names import nearest
from fedra.rules import Family, rule_class
from fedra.simulation import SimulationConfig, check_trusted, read_toml

# The lists of a grid, from the slowest to the fastest to vary, and the setting that an entry of each stands for.
AXES = {
    "datasets": "dataset",
    "partitions": "partition",
    "settings": "setting",
    "seeds": "seed",
    "attacks": "attack",
    "alpha_q": "alpha_q",
    "rules": "rule",
}
HONEST = "honest"

_PARAMETERS = {"dataset": "dataset_params", "rule": "rule_params", "attack": "attack_params"}
_DEFAULTS = {known.name: known.default for known in fields(SimulationConfig)}


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One place in the tables of a grid, and the run whose result it shows.

    `dataset` to `attack` are labels of the grid's entries; `alpha_q` is the column, also where the run does not depend
    on it; `config` and `run` are the run and its name.
    """

    dataset: str
    partition: str
    setting: str
    rule: str
    attack: str
    alpha_q: float | None
    seed: int
    run: str
    config: SimulationConfig

    @property
    def labels(self) -> dict[str, Any]:
        """What tells this cell from the others, by axis."""
        return {name: getattr(self, name) for name in AXES.values()}


@dataclass(frozen=True, kw_only=True)
class Grid:
    """All cells of a grid, in order."""

    cells: tuple[Cell, ...]

    @property
    def runs(self) -> dict[str, SimulationConfig]:
        """The distinct runs by name, in the order of their first cell."""
        return {cell.run: cell.config for cell in self.cells}

    @classmethod
    def read(cls, path: Path, *, trust: bool = False) -> Grid:
        """Return the grid of a TOML file.

        Args:
            path: the file.
            trust: whether code that it names as module:name may be imported; else that is an error.
        """
        return cls._expanded(read_toml(path), None if trust else path)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Grid:
        """Expand lists of entries, the `fixed` settings, and `blocks` that each replace some of the lists.

        An entry is a name, or a table with the name, `params`, a `label`, and `fixed` settings that go with it. The
        values are taken for the caller's own: code that they name is imported.
        """
        return cls._expanded(values, None)

    @classmethod
    def _expanded(cls, values: Mapping[str, Any], untrusted: Path | None) -> Grid:
        """Return all cells; `untrusted` is the file that the values come from where nobody stands for it."""
        valid = [*AXES, "fixed", "blocks"]
        _check_keys("a grid", values, valid)
        fixed = _fixed(values.get("fixed", {}), "[fixed]")
        lists = {key: value for key, value in values.items() if key in AXES}
        blocks = values.get("blocks", [{}])
        if not isinstance(blocks, list) or not blocks or not all(isinstance(block, Mapping) for block in blocks):
            raise ValueError("blocks is not a list of tables; write each one under [[blocks]]")
        cells: dict[tuple[Any, ...], Cell] = {}
        for block in blocks:
            _check_keys("a block", block, [*AXES, "fixed"])
            own = {**fixed, **_fixed(block.get("fixed", {}), "fixed of a block")}
            chosen = {**lists, **{key: block[key] for key in block if key in AXES}}
            for cell in _cells(chosen, own, untrusted):
                place = tuple(cell.labels.values())
                if cells.setdefault(place, cell).run != cell.run:
                    raise ValueError(f"two different runs for {_said(cell.labels)}; give one of the entries a label")
        return cls(cells=tuple(cells.values()))


@dataclass(frozen=True, kw_only=True)
class _Entry:
    label: Any
    settings: Mapping[str, Any]


def _cells(lists: Mapping[str, Any], fixed: Mapping[str, Any], untrusted: Path | None) -> Iterator[Cell]:
    axes = [_entries(axis, lists.get(axis, [_DEFAULTS[name]])) for axis, name in AXES.items()]
    for chosen in itertools.product(*axes):
        labels = {name: entry.label for name, entry in zip(AXES.values(), chosen, strict=True)}
        settings = dict(fixed)
        for entry in chosen:
            settings.update(entry.settings)
        if untrusted is not None:
            check_trusted(settings, untrusted)
        try:
            config = _independent(SimulationConfig.from_dict(settings))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{_said(labels)}: {error}") from error
        yield Cell(**labels, config=config, run=run_name(config))


def _independent(config: SimulationConfig) -> SimulationConfig:
    """Drop the lie about quantities where nobody lies or the rule does not look, so that such cells share one run."""
    unseen = rule_class(config.rule).family is Family.IGNORANT
    return replace(config, alpha_q=None) if config.attack == "none" or unseen else config


def _entries(axis: str, given: Any) -> list[_Entry]:
    if not isinstance(given, Sequence) or isinstance(given, str) or not given:
        raise ValueError(f"{axis} = {given!r}; give a list of at least one")
    entries = [_entry(axis, AXES[axis], value) for value in given]
    labels = [entry.label for entry in entries]
    for label in labels:
        if labels.count(label) > 1:
            raise ValueError(f"{axis} has {label!r} twice; leave one out, or give it another label")
    return entries


def _entry(axis: str, name: str, value: Any) -> _Entry:
    if axis == "alpha_q":
        return _quantity_entry(value)
    if axis == "seeds" or not isinstance(value, Mapping):
        return _Entry(label=value, settings={name: value})
    _check_keys(f"an entry of {axis}", value, [name, "label", "fixed", *(["params"] if name in _PARAMETERS else [])])
    if name not in value:
        raise ValueError(f"an entry of {axis} has no {name}: {dict(value)!r}")
    settings = {**_fixed(value.get("fixed", {}), f"fixed of {value[name]!r}"), name: value[name]}
    parameters = value.get("params", {})
    if parameters:
        settings[_PARAMETERS[name]] = parameters
    said = ", ".join(f"{key}={item}" for key, item in parameters.items()) if isinstance(parameters, Mapping) else ""
    label = value.get("label", f"{value[name]} {said}".strip())
    if not isinstance(label, str):
        raise ValueError(f"an entry of {axis} has label = {label!r}; give a text")
    return _Entry(label=label, settings=settings)


def _quantity_entry(value: Any) -> _Entry:
    if value is None or value == HONEST:
        return _Entry(label=None, settings={})
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ValueError(
            f"alpha_q has {value!r}; give numbers, or {HONEST!r} for malicious clients that claim the truth"
        )
    return _Entry(label=float(value), settings={"alpha_q": float(value)})


def _fixed(settings: Any, where: str) -> dict[str, Any]:
    if not isinstance(settings, Mapping):
        raise ValueError(f"{where} is {settings!r}; give a table of settings")
    found = {key.replace("-", "_"): value for key, value in settings.items()}
    for axis, name in AXES.items():
        if name in found:
            raise ValueError(f"{where} has {name}; give it as a list: {axis} = [{found[name]!r}]")
    _check_keys(where, found, [name for name in _DEFAULTS if name not in AXES.values()])
    return found


def _check_keys(where: str, values: Mapping[str, Any], valid: Sequence[str]) -> None:
    for key in values:
        if key not in valid:
            raise ValueError(f"{where} has no {key!r}{nearest(key, valid)}")


def _said(labels: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {HONEST if label is None else label}" for name, label in labels.items())
