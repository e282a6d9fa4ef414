"""What the contest is made of, as values: rules, attacks, settings, and settings in which an assumption is broken."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

RuleEntry = str | Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class ContestSetting:
    """A place where the contest is held: a data set, a partition, and settings of its runs.

    `federation` describes who takes part, as a table or the path of a file with one; what `fixed` states wins.
    """

    key: str
    dataset: str
    partition: str
    fixed: Mapping[str, Any]
    federation: str | Mapping[str, Any] | None = None
    label: str = ""
    optional: bool = False

    def block(self, *, label: str = "", **changes: Any) -> dict[str, Any]:
        """Return it as a block of a grid, with other settings where they are given."""
        name = label or self.label
        dataset: Any = {"dataset": self.dataset, "label": name} if name else self.dataset
        block = {"datasets": [dataset], "partitions": [self.partition], "fixed": {**self.fixed, **changes}}
        return block if self.federation is None else {**block, "federation": self.federation}


@dataclass(frozen=True, kw_only=True)
class BrokenSetting:
    """Where an assumption does not hold: `times` as many attackers as assumed, or `attackers` of so many `silos`."""

    times: tuple[float, ...] = ()
    silos: tuple[int, ...] = ()
    attackers: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Programme:
    """The contest as it is written down."""

    rules: tuple[RuleEntry, ...]
    attacks: tuple[str, ...]
    alpha_q: tuple[float, ...]
    own_claims: frozenset[str]
    seeds: tuple[int, ...]
    names: Mapping[str, str]
    settings: Mapping[str, ContestSetting]
    broken_attacks: tuple[str, ...]
    broken_alpha_q: float
    broken: Mapping[str, BrokenSetting]

    @property
    def usual_settings(self) -> tuple[str, ...]:
        """Those that are not optional."""
        return tuple(key for key, setting in self.settings.items() if not setting.optional)


def rule_label(entry: RuleEntry) -> str:
    """Return what the results call the row of a rule without parameters, or with a label."""
    if isinstance(entry, str):
        return entry
    before = f"{entry['before']}+" if "before" in entry else ""
    return str(entry.get("label", f"{before}{entry['rule']}"))


@cache
def read_programme() -> Programme:
    """Read it."""
    values = tomllib.loads(files("fedra.contest").joinpath("contest.toml").read_text(encoding="utf-8"))
    broken = values["broken"]
    return Programme(
        rules=tuple(values["rules"]),
        attacks=tuple(values["attacks"]),
        alpha_q=tuple(values["alpha_q"]),
        own_claims=frozenset(values["own_claims"]),
        seeds=tuple(values["seeds"]),
        names=values["names"],
        settings={key: ContestSetting(key=key, **given) for key, given in values["settings"].items()},
        broken_attacks=tuple(broken["attacks"]),
        broken_alpha_q=broken["alpha_q"],
        broken={
            key: BrokenSetting(**{name: tuple(numbers) for name, numbers in given.items()})
            for key, given in broken["settings"].items()
        },
    )
