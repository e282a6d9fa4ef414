"""Which runs are the paper's, by what they are: the settings of a run decide, not the name of its grid."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

from fedra.paper.protocols import read_protocols
from fedra.paper.published import read_paper
from fedra.report.model.outcomes import NO_ATTACK, Outcome, grouped
from fedra.simulation import SimulationConfig


def paper_grids(outcomes: Iterable[Outcome]) -> frozenset[str]:
    """Return the grids that are as `fedra paper` makes them: every cell that can be read has a place in the paper.

    An attack that the paper does not have has a place beside all of the paper's attacks.
    """
    readable = [outcome for outcome in outcomes if outcome.config]
    by_grid = grouped(readable, lambda outcome: outcome.grid)
    return frozenset(grid for grid, members in by_grid.items() if _is_papers(members))


def _is_papers(members: Sequence[Outcome]) -> bool:
    others = [outcome for outcome in members if not has_place(outcome)]
    if not all(map(_may_be_added, others)):
        return False
    attacks = {outcome.attack for outcome in members}
    # Only tables take added attacks, and each of them has all three of the paper's.
    return not others or _attacks() <= attacks


def has_place(outcome: Outcome) -> bool:
    """Whether `fedra paper` would run this cell: a protocol's settings, in one of the paper's tables or figures."""
    config = outcome.config
    if config.get("attack_params") or outcome.attack != config.get("attack", NO_ATTACK):
        return False
    if not read_protocols().fits(config):
        return False
    if not outcome.attacked:
        return (outcome.setting, outcome.rule) in _clean_places()
    return outcome.attack in _attacks() and (outcome.partition, outcome.setting) in _parts()


def _may_be_added(outcome: Outcome) -> bool:
    """Whether a cell is that of an attack that the paper does not have, in a place of one of its tables."""
    return (
        outcome.attacked
        and outcome.attack not in _attacks()
        and (outcome.partition, outcome.setting) in _table_parts()
        and read_protocols().fits(outcome.config)
    )


def published_figure(outcome: Outcome) -> float | None:
    """Return the figure that the paper has for a run like this one, None where it has none.

    A run is like the paper's where its settings are those of a protocol of `fedra paper`, for as many rounds or more,
    and its rule and attack have no parameters of their own.
    """
    config = outcome.config
    if not config or config.get("rule_params") or config.get("before") or config.get("attack_params"):
        return None
    if not read_protocols().fits(config, longer=True):
        return None
    names = ("dataset", "partition", "setting", "rule", "attack")
    place = tuple(str(config.get(name, getattr(SimulationConfig, name))) for name in names)
    return _figure(place, config.get("alpha_q"))


def labelled_figure(outcome: Outcome) -> float | None:
    """Return the figure that the paper has for the labels of a cell, of a grid that is known to be the paper's."""
    place = (outcome.dataset, outcome.partition, outcome.setting, outcome.rule, outcome.attack)
    return _figure(place, outcome.alpha_q)


def _figure(place: tuple[str, ...], alpha_q: float | None) -> float | None:
    known = read_paper().by_place
    # Rules that ignore quantities were published without alpha_q.
    return known.get((*place, alpha_q), known.get((*place, None)))


@cache
def _attacks() -> frozenset[str]:
    return frozenset(line.attack for line in read_paper().accuracies)


@cache
def _table_parts() -> frozenset[tuple[str, str]]:
    return frozenset((line.partition, line.setting) for line in read_paper().accuracies)


@cache
def _parts() -> frozenset[tuple[str, str]]:
    """Return the partitions and settings of the tables and of the figures that have attacks."""
    figures = {
        (partition, setting)
        for figure in read_paper().figures
        for partition in figure.grid.get("partitions", [SimulationConfig.partition])
        for setting in figure.grid.get("settings", [SimulationConfig.setting])
        if figure.grid["attacks"] != [NO_ATTACK]
    }
    return _table_parts() | figures


@cache
def _clean_places() -> frozenset[tuple[str, str]]:
    """Return the settings and rules of the figures without attack."""
    return frozenset(
        (setting, rule)
        for figure in read_paper().figures
        if figure.grid["attacks"] == [NO_ATTACK]
        for setting in figure.grid.get("settings", [SimulationConfig.setting])
        for rule in figure.grid["rules"]
    )
