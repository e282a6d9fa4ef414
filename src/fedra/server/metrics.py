"""Reading the metrics of a reply, and of what became of them the numbers that a record holds."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fedra.server.faults import Unusable, printable, short
from fedra.server.layout import Kinds, kinds_of

if TYPE_CHECKING:
    from fedra.server.replies import Reply

# Averages, squares and sums over clients of what is below stay finite.
LARGEST_METRIC = 1e100
# Reading a number costs far more than sending it: a reply's metrics are counted before any is read.
_MOST_METRICS = 10_000
_MOST_NUMBERS = 100_000
_MOST_RECORDED = 100
_LONGEST_NAME = 100


def read_metrics(
    metrics: Mapping[str, Any], *, leave_out: str = "", words: bool = False
) -> tuple[dict[str, Any], Kinds]:
    """Return the metrics as plain Python values, and their kinds; `words` lets text, bytes and truth values pass.

    What is returned is made here, so that whoever computes with it meets no type that a client chose.
    """
    _check_count(metrics)
    values: dict[str, Any] = {}
    kinds: list[tuple[str, str]] = []
    for key, value in metrics.items():
        if not isinstance(key, str):
            raise Unusable(f"a metric is named by a {type(key).__name__}, not by text")
        if key == leave_out:
            continue
        if isinstance(value, list):
            values[key], kind = _read_list(key, value), f"a list of {len(value)}"
        elif words and isinstance(value, bool | str | bytes):
            values[key], kind = value, type(value).__name__
        else:
            values[key], kind = read_number(key, value), "one number"
        kinds.append((key, kind))
    return values, kinds_of(kinds)


def _read_list(key: str, values: list[Any]) -> list[int] | list[float]:
    """Return a list of numbers of one type, as Flower's records want them."""
    numbers = [read_number(key, value) for value in values]
    whole = [number for number in numbers if isinstance(number, int)]
    return whole if len(whole) == len(numbers) else [float(number) for number in numbers]


def _check_count(metrics: Mapping[str, Any]) -> None:
    if len(metrics) > _MOST_METRICS:
        raise Unusable(f"{len(metrics)} metrics, more than {_MOST_METRICS}")
    lengths = {key: len(value) for key, value in metrics.items() if isinstance(value, list)}
    longest = max(lengths, key=lengths.__getitem__, default="")
    if sum(lengths.values()) > _MOST_NUMBERS:
        raise Unusable(
            f"its metrics hold {sum(lengths.values())} numbers in lists, more than {_MOST_NUMBERS}: "
            f"{short(longest)} alone {lengths[longest]}"
        )


def read_number(key: str, value: Any) -> int | float:
    """Return one number of a client's as a plain one."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise Unusable(f"metric {short(key)} holds {type(value).__name__}, not numbers")
    number = int(value) if isinstance(value, int | np.integer) else float(value)
    if not abs(number) <= LARGEST_METRIC:  # nor is NaN
        raise Unusable(f"metric {short(key)} is not finite, or beyond {LARGEST_METRIC:g}")
    return number


def read_numbers(metrics: Mapping[str, Any]) -> dict[str, int | float]:
    """Return those metrics that are one finite number, for a platform whose clients may send others beside them."""
    _check_count(metrics)
    found: dict[str, int | float] = {}
    for key, value in metrics.items():
        with contextlib.suppress(Unusable):
            if isinstance(key, str):
                found[key] = read_number(key, value)
    return found


def average_metrics(kept: Sequence[Reply], weights: Sequence[float]) -> dict[str, float]:
    """Return the weighted mean of each metric that more than half of these replies have, over those that have it.

    So nobody can take a metric from the round by leaving it out, nor bring one in alone.
    """
    counts = Counter(name for reply in kept for name in reply.metrics)
    means = {}
    for name in sorted(name for name, count in counts.items() if 2 * count > len(kept)):
        pairs = [
            (weight, reply.metrics[name]) for weight, reply in zip(weights, kept, strict=True) if name in reply.metrics
        ]
        total = sum(weight for weight, _ in pairs)
        if not 0 < total < math.inf:  # a rule that somebody wrote
            pairs, total = [(1.0, value) for _, value in pairs], float(len(pairs))
        means[name] = sum(weight / total * value for weight, value in pairs)
    return means


def plain_numbers(metrics: Mapping[str, Any] | None) -> dict[str, float]:
    """Return those of a round's metrics that are one finite number, a hundred at most, under harmless names."""
    found = {
        printable(str(key), _LONGEST_NAME): float(value)
        for key, value in (metrics or {}).items()
        if isinstance(value, int | float | np.integer | np.floating)
        and not isinstance(value, bool)
        # As a plain number: float32 takes the limit itself for infinity, and infinity would pass.
        and abs(int(value) if isinstance(value, int | np.integer) else float(value)) <= LARGEST_METRIC
    }
    return dict(list(found.items())[:_MOST_RECORDED])
