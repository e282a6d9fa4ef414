"""The paper's tables and figures as one grid: what is asked for, on which data, under which protocol."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedra import checks
from fedra.attacks import make_attack
from fedra.data import missing_datasets
from fedra.experiments.grid import Grid
from fedra.names import nearest
from fedra.paper.matching import paper_grids
from fedra.paper.protocols import Protocol, read_protocols
from fedra.paper.published import BEST_IGNORANT, Figure, read_paper
from fedra.report.model.outcomes import NO_ATTACK, check_places, earlier_outcomes, unique
from fedra.rules import Family, rule_class, rule_family
from fedra.simulation import SimulationConfig

STATISTICS = "table1"
DIAGRAM = "figure3"
TARGETS = (*(f"table{number}" for number in range(1, 8)), *(f"figure{number}" for number in range(1, 7)))
GRID_PREFIX = "paper-"

_HASH_DIGITS = 8

Entry = str | Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """Which of the paper's tables and figures, on which data, for how many seeds.

    Attributes:
        targets: of `TARGETS`.
        protocol: a name of `read_protocols().by_name`.
        datasets: those of the protocol; one that stands for one of the paper's takes its place.
        num_seeds: seeds 0, 1, ... of every cell.
        rules: only these of the paper's rules; None: all.
        added_rules: more rows for the tables, and lines for Figure 2, as entries of a grid's `rules`.
        added_attacks: more columns for the tables, as entries of a grid's `attacks`.
        alpha_q: columns instead of the protocol's.
        data_dir: where data sets are found; None reads FEDRA_DATA.
    """

    targets: tuple[str, ...] = TARGETS
    protocol: str = "quick"
    datasets: tuple[str, ...] = ("mnist",)
    num_seeds: int = 1
    rules: tuple[str, ...] | None = None
    added_rules: tuple[Entry, ...] = ()
    added_attacks: tuple[Entry, ...] = ()
    alpha_q: tuple[float, ...] | None = None
    data_dir: str | None = None

    def __post_init__(self) -> None:
        _check_names("target", self.targets, TARGETS)
        _check_names(f"data set of the {self.protocol} protocol", self.datasets, self._protocol.datasets)
        checks.whole("num_seeds", self.num_seeds, 1)
        if self.rules is not None:
            _check_names("rule of the paper", self.rules, paper_rules())
        for entry in self.added_rules:
            rule_class(_rule_name(entry))
        for entry in self.added_attacks:
            _check_attack(entry)
        if self.alpha_q == ():
            raise ValueError("alpha_q is empty; give at least one number")

    @property
    def name(self) -> str:
        """The grid's name: the same for the same choice, whatever the order in which it was given."""
        chosen: list[Any] = [
            sorted(set(self.targets)),
            sorted(set(self.datasets)),
            self.num_seeds,
            None if self.rules is None else sorted(set(self.rules)),
            sorted(json.dumps(entry, sort_keys=True) for entry in self.added_rules),
            sorted(self._alpha_q),
        ]
        # Names from before there were added attacks stay.
        if self.added_attacks:
            chosen.append(sorted(json.dumps(entry, sort_keys=True) for entry in self.added_attacks))
        digest = hashlib.sha256(json.dumps(chosen).encode()).hexdigest()[:_HASH_DIGITS]
        return f"{GRID_PREFIX}{self.protocol}-{digest}"

    def grid(self) -> Grid | None:
        """Return all cells of the targets, those that several of them show once; None where there is nothing to run."""
        blocks = [block for target in TARGETS if target in self.targets for block in self._blocks(target)]
        return Grid.from_dict({"seeds": list(range(self.num_seeds)), "blocks": blocks}) if blocks else None

    def absent(self) -> dict[str, str]:
        """Return the targets that this choice has no runs for, Table 1 apart, each with the reason."""
        return {
            target: self._reason(target)
            for target in TARGETS
            if target in self.targets and target != STATISTICS and not self._blocks(target)
        }

    def needed_datasets(self) -> set[str]:
        """Return the data sets that runs are on."""
        grid = self.grid()
        return set() if grid is None else {cell.dataset for cell in grid.cells}

    def check_folder(self, out: Path, known: Path | None = None) -> None:
        """Raise where other grids of the paper, here or in known results, have other runs in the tables' places."""
        grid = self.grid()
        if grid is None:
            return
        for folder, found in earlier_outcomes(out, known):
            outcomes = [outcome for outcome in found if outcome.grid != self.name]
            others = paper_grids(outcomes)
            check_places(grid, (outcome for outcome in outcomes if outcome.grid in others), folder)

    def missing_data(self, *, to_run: bool) -> list[str]:
        """Return a sentence for each data set that is needed here and not there.

        Args:
            to_run: whether the runs are made here; on a cluster the nodes have the data.
        """
        needed = set(self.datasets if STATISTICS in self.targets else ())
        if to_run:
            needed |= self.needed_datasets()
        return missing_datasets(needed, self.data_dir, "; --datasets digits needs no files")

    @property
    def _protocol(self) -> Protocol:
        return read_protocols().named(self.protocol)

    @property
    def _alpha_q(self) -> list[float]:
        return list(self._protocol.alpha_q if self.alpha_q is None else self.alpha_q)

    def _blocks(self, target: str) -> list[dict[str, Any]]:
        if target in (STATISTICS, DIAGRAM):
            return []
        lists = self._figure_lists(target) if target.startswith("figure") else self._table_lists(target)
        if not lists["rules"]:
            return []
        return [
            {**lists, "datasets": [dataset], "partitions": [kind], "fixed": self._fixed(dataset, kind)}
            for dataset in self._chosen(lists["datasets"])
            for kind in lists["partitions"]
        ]

    def _fixed(self, dataset: str, kind: str) -> dict[str, Any]:
        place = {} if self.data_dir is None else {"data_dir": self.data_dir}
        return {**self._protocol.settings(dataset, kind), **place}

    def _table_lists(self, target: str) -> dict[str, Any]:
        number = _number(target)
        added = [entry for entry in self.added_rules if _fits(entry, number)]
        lines = [line for line in read_paper().accuracies if line.table == number]
        return {
            "datasets": unique(line.dataset for line in lines),
            "partitions": unique(line.partition for line in lines),
            "settings": unique(line.setting for line in lines),
            "rules": [*filter(self._wanted, table_rules(number)), *added],
            "attacks": [*unique(line.attack for line in lines), *self.added_attacks],
            "alpha_q": self._alpha_q,
        }

    def _figure_lists(self, target: str) -> dict[str, Any]:
        grid = _figure(target).grid
        lists = {"partitions": [SimulationConfig.partition], **grid}
        lists["rules"] = list(filter(self._wanted, grid["rules"]))
        if figure_over_rules(_figure(target)):
            lists["rules"] += self.added_rules
        if "alpha_q" in grid:
            lists["alpha_q"] = self._figure_alpha_q(grid["alpha_q"])
        return lists

    def _figure_alpha_q(self, drawn: Sequence[float]) -> list[float]:
        """Return a figure's alpha_q: the columns at hand; a figure at a single one keeps it unless others are asked."""
        if len(drawn) > 1:
            return self._alpha_q
        asked = drawn if self.alpha_q is None else self.alpha_q
        return [alpha for alpha in drawn if alpha in asked] or list(asked)

    def _wanted(self, entry: Entry) -> bool:
        return self.rules is None or _rule_name(entry) in self.rules

    def _chosen(self, published: Sequence[str]) -> list[str]:
        stands_for = read_protocols().stands_for
        return [name for name in unique(self.datasets) if name in published or stands_for.get(name) in published]

    def _reason(self, target: str) -> str:
        if target == DIAGRAM:
            return f"{target} is a diagram of the method: there is nothing to run"
        lists = self._figure_lists(target) if target.startswith("figure") else self._table_lists(target)
        if not lists["rules"]:
            return f"{target} has none of the rules chosen"
        return f"{target} is about {' and '.join(lists['datasets'])}: {', '.join(self.datasets)} is not in it"


def paper_rules() -> list[str]:
    """Return the rules of the paper's tables and figures."""
    tables = (rule for number in range(2, 8) for rule in table_rules(number))
    return unique([*tables, *(_rule_name(entry) for figure in read_paper().figures for entry in figure.grid["rules"])])


def table_rules(number: int) -> list[str]:
    """Return the rules that a table needs; its best quantity-ignorant one is sought among those of the next table."""
    published = unique(line.rule for line in read_paper().accuracies if line.table == number)
    if BEST_IGNORANT not in published:
        return published
    return [*table_rules(number + 1), *(rule for rule in published if rule != BEST_IGNORANT)]


def figure_over_rules(figure: Figure) -> bool:
    """Whether a figure compares rules under attack, so that an added one has a line in it."""
    return figure.grid["attacks"] != [NO_ATTACK] and all(isinstance(entry, str) for entry in figure.grid["rules"])


def _fits(entry: Entry, number: int) -> bool:
    """Whether a rule has a place in a table: those without columns for alpha_q are for rules that ignore quantities."""
    ignorant_only = all(rule_class(rule).family is Family.IGNORANT for rule in table_rules(number))
    return not ignorant_only or _family(entry) is Family.IGNORANT


def _family(entry: Entry) -> Family:
    if isinstance(entry, str):
        return rule_class(entry).family
    return rule_family(entry["rule"], entry.get("params", {}), entry.get("before"))


def _figure(target: str) -> Figure:
    return read_paper().figure(_number(target))


def _number(target: str) -> int:
    return int(target[-1])


def _check_attack(entry: Entry) -> None:
    name, parameters = (entry, {}) if isinstance(entry, str) else (str(entry["attack"]), entry.get("params", {}))
    if name == NO_ATTACK:
        raise ValueError(f"{name!r} is no attack that could be added: Figure 1 is about rounds without one")
    make_attack(name, **parameters)


def _rule_name(entry: Entry) -> str:
    return entry if isinstance(entry, str) else str(entry["rule"])


def _check_names(kind: str, given: Sequence[str], valid: Iterable[str]) -> None:
    names = list(valid)
    if not given:
        raise ValueError(f"no {kind} given; valid: {', '.join(names)}")
    for name in given:
        if name not in names:
            raise ValueError(f"unknown {kind} {name!r}{nearest(name, names)}")
