"""The contest as a grid: what of it is asked for, and which of its cells no run can fill."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fedra import checks
from fedra.contest.programme import BrokenSetting, ContestSetting, Programme, RuleEntry, read_programme, rule_label
from fedra.data import DATASETS, missing_datasets
from fedra.experiments.grid import Grid
from fedra.names import nearest
from fedra.report.model.outcomes import check_places, earlier_outcomes, unique
from fedra.rules import rule_class
from fedra.simulation import SimulationConfig, federation_of, overridden

GRID_PREFIX = "contest-"
BROKEN_PREFIX = "contest-broken-"
NO_ATTACK = "none"

_HASH_DIGITS = 8
# A ratio times 1.5 is to be the number that people write.
_DIGITS = 10


@dataclass(frozen=True, kw_only=True)
class Contest:
    """Which part of the contest; what is None is all of it.

    Attributes:
        settings: names of `read_programme().settings`; None: those that are not optional.
        rules: of its rules, by their labels or by the name of the rule.
        attacks: of its attacks.
        seeds: of every cell; None: the programme's.
        added_rules: more rows, as entries of a grid's `rules`.
        broken: whether it is held where an assumption is broken.
        data_dir: where data sets are found; None reads FEDRA_DATA.
        rounds: fewer or more of them than the programme has, for a try.
    """

    settings: tuple[str, ...] | None = None
    rules: tuple[str, ...] | None = None
    attacks: tuple[str, ...] | None = None
    seeds: tuple[int, ...] | None = None
    added_rules: tuple[RuleEntry, ...] = ()
    broken: bool = False
    data_dir: str | None = None
    rounds: int | None = None

    def __post_init__(self) -> None:
        programme = read_programme()
        where = "setting with a broken assumption" if self.broken else "setting of the contest"
        _check_names(where, self.settings, programme.broken if self.broken else programme.settings)
        _check_names("rule of the contest", self.rules, [*_rule_names(programme), *_labels(programme)])
        attacks = programme.broken_attacks if self.broken else programme.attacks
        _check_names("attack of the contest", self.attacks, attacks)
        if self.seeds is not None:
            if not self.seeds:
                raise ValueError("no seeds given; give at least one whole number")
            for seed in self.seeds:
                checks.whole("a seed", seed, 0, checks.MOST_WHOLE)
        if self.rounds is not None:
            checks.whole("rounds", self.rounds, 1)
        for entry in self.added_rules:
            rule_class(entry if isinstance(entry, str) else str(entry["rule"]))
        if not self._rules:
            raise ValueError("no rules given; name one, or leave --rules out for all")

    @property
    def name(self) -> str:
        """The grid's name: the same for the same choice, whatever the order in which it was given."""
        chosen = [
            sorted(self._settings),
            sorted(json.dumps(entry, sort_keys=True) for entry in self._rules),
            sorted(self._attacks),
            sorted(set(self._seeds)),
            self.rounds,
        ]
        digest = hashlib.sha256(json.dumps(chosen).encode()).hexdigest()[:_HASH_DIGITS]
        return f"{BROKEN_PREFIX if self.broken else GRID_PREFIX}{digest}"

    @cached_property
    def grid(self) -> Grid:
        """All cells; those of rules that refuse so few clients are left out and listed."""
        blocks = [block for key in self._settings for block in self._blocks(read_programme().settings[key])]
        lists = {"seeds": unique(self._seeds), "settings": ["dynamic"], "rules": self._rules, "blocks": blocks}
        return Grid.from_dict(lists, leave_out_refused=True)

    def notes(self) -> list[str]:
        """Return a sentence for each rule and data set in which it refuses."""
        found = {(refused.labels["rule"], refused.labels["dataset"]): refused.reason for refused in self.grid.refused}
        return [f"{rule} has no part in {dataset}: {reason}" for (rule, dataset), reason in found.items()]

    def missing_data(self, *, to_run: bool) -> list[str]:
        """Return a sentence for each data set that is needed here and not there.

        Args:
            to_run: whether the runs are made here; on a cluster the nodes have the data.
        """
        needed = {read_programme().settings[key].dataset for key in self._settings} if to_run else set()
        return missing_datasets(needed, self.data_dir, "; --settings digits-silos needs no files")

    def check_folder(self, out: Path, known: Path | None = None) -> None:
        """Raise where other grids of the contest, here or in known results, have other runs in the tables' places."""
        for folder, found in earlier_outcomes(out, known):
            others = (o for o in found if is_contest(o.grid, broken=self.broken) and o.grid != self.name)
            check_places(self.grid, others, folder)

    @property
    def _settings(self) -> list[str]:
        programme = read_programme()
        usual = tuple(programme.broken) if self.broken else programme.usual_settings
        return unique(usual if self.settings is None else self.settings)

    @property
    def _rules(self) -> list[RuleEntry]:
        wanted = self.rules
        own = [
            entry
            for entry in read_programme().rules
            if wanted is None or rule_label(entry) in wanted or _rule_name(entry) in wanted
        ]
        return [*own, *self.added_rules]

    @property
    def _attacks(self) -> list[str]:
        programme = read_programme()
        every = programme.broken_attacks if self.broken else programme.attacks
        return [name for name in every if self.attacks is None or name in self.attacks]

    @property
    def _seeds(self) -> tuple[int, ...]:
        return read_programme().seeds if self.seeds is None else self.seeds

    def _blocks(self, setting: ContestSetting) -> list[dict[str, Any]]:
        changes: dict[str, Any] = {} if self.data_dir is None else {"data_dir": self.data_dir}
        if self.rounds is not None:
            changes["rounds"] = self.rounds
        if self.broken:
            return list(self._broken_blocks(setting, read_programme().broken[setting.key], changes))
        return self._with_claims(setting.block(**changes), self._attacks, read_programme().alpha_q)

    def _broken_blocks(
        self, setting: ContestSetting, broken: BrokenSetting, changes: Mapping[str, Any]
    ) -> Iterable[dict[str, Any]]:
        alpha_q = [read_programme().broken_alpha_q]
        if broken.times:
            ratio = _assumed(setting)
            crowds = [_crowd(attack, times, ratio) for attack in self._attacks for times in broken.times]
            yield from self._with_claims(setting.block(**changes), crowds, alpha_q)
        for number in broken.silos:
            silos = {"num_clients": number, "num_sampled": number, **changes}
            block = setting.block(label=f"{DATASETS[setting.dataset].label} ({number} silos)", **silos)
            counted = [
                _counted(attack, count) for attack in self._attacks for count in broken.attackers if 0 < count < number
            ]
            none = [NO_ATTACK] if 0 in broken.attackers else []
            yield from self._with_claims(block, [*none, *counted], alpha_q)

    def _with_claims(
        self, block: dict[str, Any], attacks: Iterable[Any], alpha_q: Iterable[float]
    ) -> list[dict[str, Any]]:
        """Return blocks of the attacks that claim by alpha_q, and of those that choose their claims."""
        own = read_programme().own_claims
        chosen = list(attacks)
        claiming = [entry for entry in chosen if _attack_name(entry) not in own]
        choosing = [entry for entry in chosen if _attack_name(entry) in own]
        blocks = []
        if claiming:
            blocks.append({**block, "attacks": claiming, "alpha_q": list(alpha_q)})
        if choosing:
            blocks.append({**block, "attacks": choosing, "alpha_q": ["honest"]})
        return blocks


def is_contest(grid: str, *, broken: bool) -> bool:
    """Whether a grid is the contest's, by its name: where an assumption is broken, or where none is."""
    return grid.startswith(GRID_PREFIX) and grid.startswith(BROKEN_PREFIX) == broken


def _assumed(setting: ContestSetting) -> float:
    """Return the ratio that rules assume in a setting, by what it fixes or its federation says."""
    described = {} if setting.federation is None else federation_of(setting.federation, None)
    stated = overridden(described, setting.fixed)
    ratio: float = stated.get("assumed_ratio", stated.get("malicious_ratio", SimulationConfig.malicious_ratio))
    return ratio


def _crowd(attack: str, times: float, ratio: float) -> dict[str, Any]:
    """Return an attack by so many times as many clients as the rule assumes."""
    more = {"malicious_ratio": round(ratio * times, _DIGITS), "assumed_ratio": ratio}
    if times == 1:
        return {"attack": attack, "label": f"{attack}, as assumed"}
    return {"attack": attack, "label": f"{attack}, {times:g} times", "fixed": more}


def _counted(attack: str, count: int) -> dict[str, Any]:
    label = f"{attack}, {count} attacker{'' if count == 1 else 's'}"
    return {"attack": attack, "label": label, "fixed": {"num_malicious": count}}


def _attack_name(entry: Any) -> str:
    return entry if isinstance(entry, str) else str(entry["attack"])


def _rule_name(entry: RuleEntry) -> str:
    return entry if isinstance(entry, str) else str(entry["rule"])


def _rule_names(programme: Programme) -> list[str]:
    return unique(_rule_name(entry) for entry in programme.rules)


def _labels(programme: Programme) -> list[str]:
    return [label for entry in programme.rules if (label := rule_label(entry)) not in _rule_names(programme)]


def _check_names(kind: str, given: Iterable[str] | None, valid: Iterable[str]) -> None:
    names = list(valid)
    for name in given or ():
        if name not in names:
            raise ValueError(f"unknown {kind} {name!r}{nearest(name, names)}")
