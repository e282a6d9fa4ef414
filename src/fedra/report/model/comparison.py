"""Tables that compare rules: rows, columns and captions from outcomes, and the tables of any grid."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fedra.data import default_learning_rate
from fedra.report.appearance import DISPLAY_NAMES, Names, display_name
from fedra.report.model import Column, Entry, Row, Table
from fedra.report.model.outcomes import Outcome, ReportData, entry_of, grouped, unique
from fedra.rules import Family
from fedra.simulation import SimulationConfig

# Data set, partition and setting: what the outcomes of one table have in common.
Part = tuple[str, str, str]
Published = Callable[[Outcome], float | None]

# A file system takes 255 bytes, and more than the stem stands in a name.
_LONGEST_STEM = 150


def nothing_published(_outcome: Outcome) -> float | None:
    """Return None: nobody has published a figure to compare with."""
    return None


def grid_tables(
    data: ReportData, *, without: Iterable[str] = (), published: Published = nothing_published
) -> tuple[Table, ...]:
    """Return a table for each grid, data set, partition and setting; rows and columns in the order of the grid's file.

    Args:
        data: the results.
        without: grids that others have tables for.
        published: the published figure of an outcome.
    """
    left_out = set(without)
    outcomes = [outcome for outcome in data.outcomes if outcome.grid not in left_out]
    tables = []
    for grid, members in grouped(outcomes, lambda outcome: outcome.grid).items():
        for part, found in grouped(members, part_of).items():
            columns = columns_of(found, data.names)
            tables.append(
                Table(
                    key=file_stem(grid, *part),
                    title=f"{grid}: {', '.join(map(data.name, part))}",
                    group=grid,
                    dataset=part[0],
                    partition=part[1],
                    setting=part[2],
                    caption=caption(found, data.names),
                    columns=columns,
                    rows=rows_of(unique(outcome.rule for outcome in found), found, columns, published, data.names),
                )
            )
    return with_distinct_keys(tables)


def part_of(outcome: Outcome) -> Part:
    """Return what an outcome has in common with those of its table."""
    return (outcome.dataset, outcome.partition, outcome.setting)


def columns_of(outcomes: Sequence[Outcome], names: Names = DISPLAY_NAMES) -> tuple[Column, ...]:
    """Return the attacks of the outcomes, each with its claimed quantities where any clients lie, in their order."""
    columns = []
    for attack, members in grouped(outcomes, lambda outcome: outcome.attack).items():
        lies = any(outcome.attacked for outcome in members)
        quantities = unique(outcome.alpha_q for outcome in members) if lies else [None]
        label = display_name(attack, names)
        columns += [Column(attack=attack, alpha_q=alpha_q, attack_label=label) for alpha_q in quantities]
    return tuple(columns)


def rows_of(
    rules: Iterable[str],
    outcomes: Sequence[Outcome],
    columns: Sequence[Column],
    published: Published = nothing_published,
    names: Names = DISPLAY_NAMES,
) -> tuple[Row, ...]:
    """Return a row for each rule."""
    by_place = grouped(outcomes, lambda outcome: (outcome.rule, outcome.attack, outcome.alpha_q))
    by_attack = grouped(outcomes, lambda outcome: (outcome.rule, outcome.attack))
    by_rule = grouped(outcomes, lambda outcome: outcome.rule)
    whole = {column.attack for column in columns if sum(other.attack == column.attack for other in columns) == 1}

    def entry(rule: str, column: Column) -> Entry | None:
        pooled = column.alpha_q is None and column.attack in whole
        place = (rule, column.attack, column.alpha_q)
        return entry_of(by_attack.get(place[:2], []) if pooled else by_place.get(place, []), published)

    return tuple(
        Row(
            label=display_name(rule, names),
            family=family_of(rule, outcomes),
            rule=rule,
            entries=tuple(entry(rule, column) for column in columns),
            own=any(outcome.own for outcome in by_rule.get(rule, ())),
        )
        for rule in rules
    )


def family_of(rule: str, outcomes: Iterable[Outcome]) -> str:
    """Return the family of a rule."""
    families = {outcome.family for outcome in outcomes if outcome.rule == rule}
    return str(Family.IGNORANT) if Family.IGNORANT in families else sorted(families)[0]


def caption(outcomes: Sequence[Outcome], names: Names = DISPLAY_NAMES) -> str:
    """Return rounds, learning rate, cap, clients and seeds, each with all its values where the outcomes differ."""
    configs = [outcome.config for outcome in outcomes]
    parts = [
        f"{_values(config.get('rounds', SimulationConfig.rounds) for config in configs)} rounds",
        f"learning rate {_values(learning_rate(config) for config in configs)}",
        _cap([config.get("max_quantity") for config in configs]),
        f"{_values(config.get('num_sampled', SimulationConfig.num_sampled) for config in configs)} clients a round",
    ]
    return f"{', '.join(parts)}; {_seeds(outcomes, names)}. Accuracy after the last round in percent."


def learning_rate(config: Mapping[str, Any]) -> float:
    """Return the learning rate of a run; its data set need not be known here."""
    given = config.get("lr")
    return default_learning_rate(str(config.get("dataset"))) if given is None else float(given)


def file_stem(*words: str) -> str:
    """Return words as one that is safe in file names, addresses and LaTeX labels."""
    return re.sub(r"[^a-z0-9]+", "-", "-".join(words).lower())[:_LONGEST_STEM].strip("-") or "table"


def with_distinct_keys(tables: Iterable[Table]) -> tuple[Table, ...]:
    """Return the tables, with a number after a key that was taken already."""
    taken: dict[str, int] = {}
    distinct = []
    for table in tables:
        taken[table.key] = taken.get(table.key, 0) + 1
        again = taken[table.key] > 1
        distinct.append(replace(table, key=f"{table.key}-{taken[table.key]}") if again else table)
    return tuple(distinct)


def _cap(caps: list[int | None]) -> str:
    values = sorted({cap for cap in caps if cap is not None})
    text = f"data and quantities capped at {_values(values)}" if values else "quantities not capped"
    return f"{text} in some runs" if values and None in caps else text


def _values(values: Iterable[float]) -> str:
    return " or ".join(f"{value:,g}" if value < 1e6 else f"{value:,}" for value in sorted(set(values)))


def _seeds(outcomes: Sequence[Outcome], names: Names) -> str:
    seeds: dict[tuple[str, str, float | None], set[int]] = {}
    for outcome in outcomes:
        seeds.setdefault((outcome.rule, outcome.attack, outcome.alpha_q), set()).add(outcome.seed)
    counts = sorted({len(found) for found in seeds.values()})
    if len(counts) == 1:
        return "1 seed" if counts == [1] else f"{counts[0]} seeds"
    most = unique(display_name(rule, names) for (rule, _, _), found in seeds.items() if len(found) == counts[-1])
    rest = str(counts[0]) if len(counts) == 2 else f"{counts[0]} or more"
    return f"{counts[-1]} seeds for {', '.join(most)}, {rest} for the others"
