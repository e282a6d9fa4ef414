"""A grid of runs as data: what is compared, what stays fixed, and which cells are one and the same run."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from fedra import checks
from fedra.attacks import named_parameters
from fedra.data import default_partition_seed, owner_file_digest
from fedra.experiments.federation_part import FederationPart, federation_part
from fedra.names import nearest
from fedra.rules import Family, Preceded
from fedra.simulation import RoundTooSmall, SimulationConfig, check_trusted, read_toml
from fedra.simulation.config import WITHOUT_EFFECT

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

_HASH_DIGITS = 10
_LONGEST_WORDS = 100

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
class Refused:
    """A place in the tables that no run can fill, since its rule takes no rounds of so few clients."""

    labels: Mapping[str, Any]
    reason: str


@dataclass(frozen=True, kw_only=True)
class Grid:
    """All cells of a grid, in order; `refused` are those left out where that was asked for."""

    cells: tuple[Cell, ...]
    refused: tuple[Refused, ...] = ()

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
        return cls._expanded(read_toml(path), None if trust else path, source=path)

    def with_data_dir(self, data_dir: str) -> Grid:
        """Return the grid with its data in another place; the runs and their names are the same."""
        return Grid(cells=tuple(replace(cell, config=replace(cell.config, data_dir=data_dir)) for cell in self.cells))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], *, leave_out_refused: bool = False) -> Grid:
        """Expand lists of entries, the `fixed` settings, and `blocks` that each replace some of the lists.

        `federation`, a table or the path of a file with one, of the grid or of a block gives the settings that neither
        lists nor `fixed` state at that place.

        An entry is a name, or a table with the name, `params`, a `label`, and `fixed` settings that go with it; that of
        a rule may say what stands `before` it, as "nnm" or "bucketing size=4". The
        values are taken for the caller's own: code that they name is imported.

        Args:
            values: the lists, `fixed` and `blocks`.
            leave_out_refused: whether a cell whose rule cannot take so few clients is left out and listed; else it is
                an error.
        """
        return cls._expanded(values, None, [] if leave_out_refused else None)

    @classmethod
    def _expanded(
        cls,
        values: Mapping[str, Any],
        untrusted: Path | None,
        refused: list[Refused] | None = None,
        source: Path | None = None,
    ) -> Grid:
        """Return all cells of values that come from the file `source`, `untrusted` where nobody stands for it."""
        valid = [*AXES, "fixed", "blocks", "federation"]
        _check_keys("a grid", values, valid)
        fixed = _fixed(values.get("fixed", {}), "[fixed]")
        lists = {key: value for key, value in values.items() if key in AXES}
        described = federation_part(values.get("federation"), source, trust=untrusted is None)
        blocks = values.get("blocks", [{}])
        wanted = "a list of tables: write each one under [[blocks]]"
        if not isinstance(blocks, list) or not all(isinstance(block, Mapping) for block in blocks):
            raise TypeError(checks.wrong("blocks", blocks, wanted))
        if not blocks:
            raise ValueError(checks.wrong("blocks", blocks, wanted))
        cells: dict[tuple[Any, ...], Cell] = {}
        for block in blocks:
            _check_keys("a block", block, [*AXES, "fixed", "federation"])
            part = federation_part(block.get("federation"), source, trust=untrusted is None)
            whole = described if part is None else None
            own = {**_settings_of(whole), **fixed, **_settings_of(part)}
            own |= _fixed(block.get("fixed", {}), "fixed of a block")
            chosen = {**_lists_of(whole), **lists, **_lists_of(part)}
            chosen |= {key: block[key] for key in block if key in AXES}
            for cell in _cells(chosen, own, untrusted, refused):
                place = tuple(cell.labels.values())
                if cells.setdefault(place, cell).run != cell.run:
                    raise ValueError(f"two different runs for {_words(cell.labels)}; give one of the entries a label")
        return cls(cells=tuple(cells.values()), refused=tuple(refused or ()))


@dataclass(frozen=True, kw_only=True)
class _Entry:
    label: Any
    settings: Mapping[str, Any]


def _cells(
    lists: Mapping[str, Any], fixed: Mapping[str, Any], untrusted: Path | None, refused: list[Refused] | None
) -> Iterator[Cell]:
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
            if refused is None or not isinstance(error, RoundTooSmall):
                raise ValueError(f"{_words(labels)}: {error}") from error
            refused.append(Refused(labels=labels, reason=str(error)))
            continue
        yield Cell(**labels, config=config, run=run_name(config))


def _independent(config: SimulationConfig) -> SimulationConfig:
    """Drop the lie about quantities where nobody lies or the rule does not look, so that such cells share one run."""
    unseen = config.make_rule(num_clients=None).family is Family.IGNORANT
    if config.stated_quantity_attack is not None:
        return replace(config, quantity_attack=None) if unseen else config
    return replace(config, alpha_q=None, quantity_attack=None) if config.attack == "none" or unseen else config


def _entries(axis: str, given: Any) -> list[_Entry]:
    wanted = "a list of at least one entry"
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise TypeError(checks.wrong(axis, given, wanted))
    if not given:
        raise ValueError(checks.wrong(axis, given, wanted))
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
    own = [*(["params"] if name in _PARAMETERS else []), *(["before"] if name == "rule" else [])]
    _check_keys(f"an entry of {axis}", value, [name, "label", "fixed", *own])
    if name not in value:
        raise ValueError(f"an entry of {axis} has no {name}: {dict(value)!r}")
    settings = {**_fixed(value.get("fixed", {}), f"fixed of {value[name]!r}"), name: value[name]}
    parameters = value.get("params", {})
    if parameters:
        settings[_PARAMETERS[name]] = parameters
    first = value[name]
    if "before" in value:
        settings["before"] = checks.text("before", value["before"])
        first = f"{value['before']}+{first}"
    words = ", ".join(f"{key}={item}" for key, item in parameters.items()) if isinstance(parameters, Mapping) else ""
    label = checks.text(f"label of an entry of {axis}", value.get("label", f"{first} {words}".strip()))
    return _Entry(label=label, settings=settings)


def _quantity_entry(value: Any) -> _Entry:
    if value is None or value == HONEST:
        return _Entry(label=None, settings={})
    wanted = f"finite numbers of at least 0, or {HONEST!r} for malicious clients that claim the truth"
    number = checks.number("an entry of alpha_q", value, least=0, wanted=wanted)
    return _Entry(label=number, settings={"alpha_q": number})


def _fixed(settings: Any, where: str) -> dict[str, Any]:
    found = {key.replace("-", "_"): value for key, value in checks.table(where, settings).items()}
    for axis, name in AXES.items():
        if name in found:
            raise ValueError(f"{where} has {name}; give it as a list: {axis} = [{found[name]!r}]")
    _check_keys(where, found, [name for name in _DEFAULTS if name not in AXES.values()])
    return found


def _settings_of(part: FederationPart | None) -> Mapping[str, Any]:
    return {} if part is None else part.settings


def _lists_of(part: FederationPart | None) -> Mapping[str, Any]:
    return {} if part is None else part.lists


def _check_keys(where: str, values: Mapping[str, Any], valid: Sequence[str]) -> None:
    for key in values:
        if key not in valid:
            raise ValueError(f"{where} has no {key!r}{nearest(key, valid)}")


def _words(labels: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {HONEST if label is None else label}" for name, label in labels.items())


def run_name(config: SimulationConfig) -> str:
    """Return a name for the run's folder: what it is in words, and a hash of what it is exactly."""
    text = json.dumps(resolved(config), sort_keys=True, default=repr)
    digest = hashlib.sha256(text.encode()).hexdigest()[:_HASH_DIGITS]
    rule = config.rule if config.before is None else f"{config.before}-{config.rule}"
    parts = [config.dataset, config.partition_name, config.setting, rule, config.attack]
    if config.alpha_q is not None:
        parts.append(f"q{config.alpha_q:g}")
    if config.stated_quantity_attack is not None:
        parts.append(config.stated_quantity_attack)
    words = re.sub(r"[^A-Za-z0-9.-]+", ".", "-".join([*parts, f"seed{config.seed}"]))
    return f"{words[:_LONGEST_WORDS]}-{digest}"


def resolved(config: SimulationConfig) -> dict[str, Any]:
    """Return all that a run's result depends on, with the defaults of rule, attack and data set written out.

    A default that changes with a later version thereby makes another run, and a default that is stated does not. An
    option of a rule that came later has in its metadata, as `later`, the value that leaves the rule as it was before,
    and counts only where it is another; what stands before a rule counts where something does; the same holds for
    options of an attack, for the quantity attack, which counts where it is another than the settings for quantities
    stand for, and for what describes a federation, which counts where it is another than the paper's.
    """
    values = {key: value for key, value in config.to_dict().items() if key not in WITHOUT_EFFECT}
    seed = config.partition_seed
    if config.stated_quantity_attack is None:
        del values["quantity_attack"]
    for name in config.unstated_of_federation:
        del values[name]
    if config.partition_name != config.partition:
        # What a file says counts, not where it lies.
        values["partition"] = f"file {owner_file_digest(config.partition)}"
    rule = config.make_rule(num_clients=None)
    if isinstance(rule, Preceded):
        values["before_params"] = asdict(rule.before)  # type: ignore[call-overload]
        rule = rule.rule
    else:
        del values["before"], values["before_params"]
    return {
        **values,
        "lr": config.learning_rate,
        "partition_seed": default_partition_seed(config.dataset, config.seed) if seed is None else seed,
        "rule_params": _rule_parameters(rule),
        "attack_params": named_parameters(config.attack, config.attack_params),
    }


def _rule_parameters(rule: Any) -> dict[str, Any]:
    same = {
        field.name
        for field in fields(rule)
        if "later" in field.metadata and field.metadata["later"] == getattr(rule, field.name)
    }
    return {name: value for name, value in asdict(rule).items() if name not in same}
