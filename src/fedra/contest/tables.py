"""The contest's tables of accuracy: one for each setting, rules by attacks, and who refuses where."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fedra.checks import is_number
from fedra.contest.entering import is_contest
from fedra.contest.programme import read_programme, rule_label
from fedra.report.appearance import DISPLAY_NAMES, Names, display_name
from fedra.report.model import Column, Row, Table
from fedra.report.model.comparison import (
    caption,
    columns_of,
    family_of,
    file_stem,
    part_of,
    rows_of,
    with_distinct_keys,
)
from fedra.report.model.outcomes import Outcome, ReportData, grouped, in_order, unique
from fedra.rules import RULES
from fedra.simulation import RoundTooSmall, SimulationConfig

CONTEST_GROUP = "Contest"
BROKEN_GROUP = "Assumption broken"
# What decides whether a rule can take a round, and nothing that names files or code.
_RULE_SETTINGS = ("rule", "rule_params", "before", "before_params")
_FEDERATION_SETTINGS = ("num_sampled", "num_clients", "malicious_ratio", "num_malicious", "assumed_ratio", "setting")


def contest_names() -> Names:
    """Return what things are called in the contest."""
    return {**DISPLAY_NAMES, **read_programme().names}


def contest_tables(data: ReportData, *, broken: bool = False) -> tuple[Table, ...]:
    """Return a table for each setting, of all grids of the contest in the results together."""
    names, group = contest_names(), BROKEN_GROUP if broken else CONTEST_GROUP
    members = [outcome for outcome in data.outcomes if is_contest(outcome.grid, broken=broken)]
    tables = []
    for part, found in grouped(members, part_of).items():
        ordered = _by_attack(found)
        columns = tuple(_named(column, names) for column in columns_of(ordered, names))
        shown = [display_name(label, names) for label in part]
        tables.append(
            Table(
                key=file_stem(group, part[0], part[1]),
                title=f"{group}: {', '.join(shown[:2])}",
                group=group,
                dataset=part[0],
                partition=part[1],
                setting=part[2],
                caption=f"{caption(found, names)}{_crowd_note(found)}",
                columns=columns,
                rows=tuple(_rows(members, ordered, columns, names)),
            )
        )
    return with_distinct_keys(tables)


def _rule_order() -> list[str]:
    return [rule_label(entry) for entry in read_programme().rules]


def _by_attack(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return the outcomes with their attacks in the programme's order, also where later calls have added to them.

    Where a number of attackers stands after an attack, by that number.
    """
    parts = {outcome.attack: outcome.attack.partition(", ") for outcome in outcomes}
    names = unique([*read_programme().attacks, *(name for name, _, _ in parts.values())])

    def place(outcome: Outcome) -> tuple[int, float, float]:
        name, _, crowd = parts[outcome.attack]
        number = re.match(r"\d+(\.\d+)?", crowd)
        # No number after it means as many attackers as assumed.
        return names.index(name), float(number[0]) if number else 1.0, outcome.alpha_q or 0.0

    return sorted(outcomes, key=place)


def _named(column: Column, names: Names) -> Column:
    """Return the column with the attack's name for people, also where a number of attackers stands after it."""
    attack, comma, rest = column.attack.partition(", ")
    claims = "chosen" if attack in read_programme().own_claims else column.claims
    return replace(column, attack_label=f"{display_name(attack, names)}{comma}{rest}", claims=claims)


def _crowd_note(outcomes: Sequence[Outcome]) -> str:
    if all(outcome.config.get("assumed_ratio") is None for outcome in outcomes):
        return ""
    told = sorted({ratio for outcome in outcomes if is_number(ratio := _told_ratio(outcome.config))})
    stated = " or ".join(f"{ratio:g}" for ratio in told)
    crowds = any(re.fullmatch(r"[\d.]+ times", outcome.attack.partition(", ")[2]) for outcome in outcomes)
    columns = "; columns say how many times as many attackers there are" if crowds else ""
    return f" The rules assume a share of {stated}{columns}."


def _told_ratio(config: Mapping[str, Any]) -> Any:
    """Return the ratio that the rule of a run was told, as far as its settings say."""
    assumed = config.get("assumed_ratio")
    return config.get("malicious_ratio", SimulationConfig.malicious_ratio) if assumed is None else assumed


def _rows(members: Sequence[Outcome], found: Sequence[Outcome], columns: Sequence[Column], names: Names) -> list[Row]:
    """Return a row for each rule that has a run here, or runs elsewhere and refuses here."""
    rules = in_order((outcome.rule for outcome in found), _rule_order())
    rows = {row.rule: row for row in rows_of(rules, found, columns, names=names)}
    configs = {outcome.rule: outcome.config for outcome in reversed(members)}
    here = {outcome.attack: outcome.config for outcome in reversed(found)}
    made = []
    for rule in in_order(configs, _rule_order()):
        entries = rows[rule].entries if rule in rows else (None,) * len(columns)
        refusals = {
            at: reason
            for at, (entry, column) in enumerate(zip(entries, columns, strict=True))
            if entry is None and (reason := refusal(configs[rule], here[column.attack]))
        }
        if rule in rows:
            made.append(replace(rows[rule], refusals=refusals))
        elif refusals:
            label, family = display_name(rule, names), family_of(rule, members)
            made.append(Row(label=label, family=family, rule=rule, entries=entries, refusals=refusals))
    return made


def refusal(rule: Mapping[str, Any], there: Mapping[str, Any]) -> str:
    """Return why the rule of one run cannot take the rounds of another, empty where it can or nothing is known."""
    if str(rule.get("rule", SimulationConfig.rule)) not in RULES:
        return ""
    settings = {key: there[key] for key in _FEDERATION_SETTINGS if key in there}
    try:
        SimulationConfig.from_dict({**settings, **{key: rule[key] for key in _RULE_SETTINGS if key in rule}})
    except RoundTooSmall as error:
        return str(error)
    except (ValueError, TypeError):
        # Results of another version, or damaged ones.
        return ""
    return ""
