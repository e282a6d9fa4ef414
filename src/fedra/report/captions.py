"""The protocol behind a table, in a sentence or two."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fedra.data import default_learning_rate
from fedra.experiments import read_paper
from fedra.experiments.protocols import read_protocols
from fedra.report.cells import ReportCell, unique
from fedra.report.names import printed
from fedra.simulation import SimulationConfig


def caption(cells: Sequence[ReportCell]) -> str:
    """Return rounds, learning rate, cap, clients and seeds, each with all its values where the cells differ."""
    configs = [cell.config for cell in cells]
    parts = [
        f"{_values(config.get('rounds', SimulationConfig.rounds) for config in configs)} rounds",
        f"learning rate {_values(learning_rate(config) for config in configs)}",
        _cap([config.get("max_quantity") for config in configs]),
        f"{_values(config.get('num_sampled', SimulationConfig.num_sampled) for config in configs)} clients a round",
    ]
    return f"{', '.join(parts)}; {_seeds(cells)}. Accuracy after the last round in percent."


def stand_in_note(dataset: str) -> str:
    """Return why a table of this data set has no published figures; empty where it may have some."""
    place = read_protocols().stands_for.get(dataset)
    known = {line.dataset for line in read_paper().accuracies}
    if dataset in known:
        return ""
    if place is None:
        return f"The paper has no {printed(dataset)}."
    return f"The paper has {printed(place)} in the place of {printed(dataset)}, so there are no published figures."


def learning_rate(config: Mapping[str, Any]) -> float:
    """Return the learning rate of a run; its data set need not be known here."""
    given = config.get("lr")
    return default_learning_rate(str(config.get("dataset"))) if given is None else float(given)


def _cap(caps: list[int | None]) -> str:
    values = sorted({cap for cap in caps if cap is not None})
    said = f"data and quantities capped at {_values(values)}" if values else "quantities not capped"
    return f"{said} in some runs" if values and None in caps else said


def _values(values: Iterable[float]) -> str:
    return " or ".join(f"{value:,g}" if value < 1e6 else f"{value:,}" for value in sorted(set(values)))


def _seeds(cells: Sequence[ReportCell]) -> str:
    seeds: dict[tuple[str, str, float | None], set[int]] = {}
    for cell in cells:
        seeds.setdefault((cell.rule, cell.attack, cell.alpha_q), set()).add(cell.seed)
    counts = sorted({len(found) for found in seeds.values()})
    if len(counts) == 1:
        return "1 seed" if counts == [1] else f"{counts[0]} seeds"
    most = unique(printed(rule) for (rule, _, _), found in seeds.items() if len(found) == counts[-1])
    rest = str(counts[0]) if len(counts) == 2 else f"{counts[0]} or more"
    return f"{counts[-1]} seeds for {', '.join(most)}, {rest} for the others"
