"""A grid of runs as data: what is compared, what stays fixed, and which cells are one and the same run."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from fedra import checks
from fedra.attacks import named_parameters
from fedra.data import default_partition_seed, owner_file_digest
from fedra.experiments.federation_part import FederationPart, federation_part
from fedra.names import nearest
from fedra.rules import Family, Preceded
from fedra.simulation import RoundTooSmall, SimulationConfig, check_trusted, overridden, read_toml, underscored
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
        moved = tuple(replace(cell, config=replace(cell.config, data_dir=data_dir)) for cell in self.cells)
        return replace(self, cells=moved)

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
        whole = _Place(settings=fixed, lists={key: value for key, value in values.items() if key in AXES})
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
            own = _Place(
                settings=_fixed(block.get("fixed", {}), "fixed of a block"),
                lists={key: block[key] for key in block if key in AXES},
            )
            places = (_described(described if part is None else None), whole, _described(part), own)
            for cell in _cells(places, untrusted, refused):
                place = tuple(cell.labels.values())
                if cells.setdefault(place, cell).run != cell.run:
                    raise ValueError(f"two different runs for {_words(cell.labels)}; give one of the entries a label")
        return cls(cells=tuple(cells.values()), refused=tuple(refused or ()))


@dataclass(frozen=True, kw_only=True)
class _Place:
    """A place of the file that states settings and lists; `described`: it is a federation."""

    settings: Mapping[str, Any]
    lists: Mapping[str, Any]
    described: bool = False


@dataclass(frozen=True, kw_only=True)
class _Entry:
    """An entry of a list: its own setting with parameters, and what is `fixed` with it."""

    label: Any
    own: Mapping[str, Any]
    fixed: Mapping[str, Any] = field(default_factory=dict)


def _cells(places: Sequence[_Place], untrusted: Path | None, refused: list[Refused] | None) -> Iterator[Cell]:
    """Yield the cells of places, the farthest first: a nearer one wins, entries of lists win over what is fixed."""
    stated = {axis: at for at, place in enumerate(places) for axis in place.lists}
    defaults = {axis: [_DEFAULTS[name]] for axis, name in AXES.items()}
    axes = [_entries(axis, places[stated[axis]].lists[axis] if axis in stated else defaults[axis]) for axis in AXES]
    for chosen in itertools.product(*axes):
        entries = dict(zip(AXES, chosen, strict=True))
        settings = _settings(places, stated, entries)
        if "partition" not in settings:
            # Quantities that are nearer than the partition. That of a federation gives way, one of a list is an error.
            given_way = places[stated["partitions"]].described
            entries["partitions"] = (
                _entry("partitions", "partition", _DEFAULTS["partition"]) if given_way else entries["partitions"]
            )
            settings |= entries["partitions"].own
        labels = {AXES[axis]: entry.label for axis, entry in entries.items()}
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


def _settings(places: Sequence[_Place], stated: Mapping[str, int], entries: Mapping[str, _Entry]) -> dict[str, Any]:
    """Return the settings of a cell; `partition` is missing where nearer quantities exclude it."""
    settings: dict[str, Any] = {}
    for axis, entry in entries.items():
        if axis not in stated:
            settings |= entry.own
    for at, place in enumerate(places):
        here = [entry.own for axis, entry in entries.items() if stated.get(axis) == at]
        settings = overridden(settings, {**place.settings, **{key: own[key] for own in here for key in own}})
    for entry in entries.values():
        if entry.fixed:
            settings = overridden(settings, {**entry.fixed, **entry.own})
    held = "partition" in settings
    for entry in entries.values():
        settings |= entry.own if held else {key: entry.own[key] for key in entry.own if key != "partition"}
    return settings


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
        return _Entry(label=value, own={name: value})
    own = [*(["params"] if name in _PARAMETERS else []), *(["before"] if name == "rule" else [])]
    _check_keys(f"an entry of {axis}", value, [name, "label", "fixed", *own])
    if name not in value:
        raise ValueError(f"an entry of {axis} has no {name}: {dict(value)!r}")
    fixed = _fixed(value.get("fixed", {}), f"fixed of {value[name]!r}")
    settings = {name: value[name]}
    parameters = value.get("params", {})
    if parameters:
        settings[_PARAMETERS[name]] = parameters
    first = value[name]
    if "before" in value:
        settings["before"] = checks.text("before", value["before"])
        first = f"{value['before']}+{first}"
    words = ", ".join(f"{key}={item}" for key, item in parameters.items()) if isinstance(parameters, Mapping) else ""
    label = checks.text(f"label of an entry of {axis}", value.get("label", f"{first} {words}".strip()))
    return _Entry(label=label, own=settings, fixed=fixed)


def _quantity_entry(value: Any) -> _Entry:
    if value is None or value == HONEST:
        return _Entry(label=None, own={})
    wanted = f"finite numbers of at least 0, or {HONEST!r} for malicious clients that claim the truth"
    number = checks.number("an entry of alpha_q", value, least=0, wanted=wanted)
    return _Entry(label=number, own={"alpha_q": number})


def _fixed(settings: Any, where: str) -> dict[str, Any]:
    found = underscored(checks.table(where, settings))
    for axis, name in AXES.items():
        if name in found:
            raise ValueError(f"{where} has {name}; give it as a list: {axis} = [{found[name]!r}]")
    _check_keys(where, found, [name for name in _DEFAULTS if name not in AXES.values()])
    return found


def _described(part: FederationPart | None) -> _Place:
    if part is None:
        return _Place(settings={}, lists={}, described=True)
    return _Place(settings=part.settings, lists=part.lists, described=True)


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
