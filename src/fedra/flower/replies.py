"""Reading replies, each alone: what cannot be used is dropped with a reason and never raises."""

from __future__ import annotations

import math
import numbers
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict

from fedra.flower.model import ModelForm, Unusable, short

# The largest count that a float64 holds exactly; sums over clients stay exact and finite far beyond it.
LARGEST_CLAIM = 2**53

MetricForm = tuple[tuple[str, int | None], ...]


@dataclass(eq=False, kw_only=True)
class Reply:
    """One client's reply: what it claims and sent, or in `fault` why it cannot be used.

    `form` is how it is laid out: the names of its records, and its metrics with their lengths where they are lists.
    """

    client: Any
    message: Any
    fault: str = ""
    claim: float = math.nan
    metrics: dict[str, Any] = field(default_factory=dict)
    views: list[npt.NDArray[Any]] = field(default_factory=list)
    form: tuple[str, str, MetricForm] = ("", "", ())


def read_messages(
    messages: Iterable[Message], *, weight_key: str, asked: frozenset[int] | None, model: ModelForm | None
) -> list[Reply]:
    """Read a round's reply messages; `model` is None for evaluation, whose replies carry no arrays."""

    def fill(reply: Reply) -> None:
        message = reply.message
        if message.has_error():
            raise Unusable(f"replied with error {message.error.code}: {short(message.error.reason)}")
        array_key = ""
        if model is not None:
            array_key, arrays = _only_record(message.content, ArrayRecord, "array record")
            reply.views = model.read(_contents(arrays))
        metric_key, metrics = _only_record(message.content, MetricRecord, "metric record")
        reply.claim, reply.metrics, metric_form = read_metrics(metrics, weight_key)
        reply.form = (array_key, metric_key, metric_form)

    replies = [Reply(client=message.metadata.src_node_id, message=message) for message in messages]
    return read_all(replies, fill, asked)


def read_all(replies: list[Reply], fill: Callable[[Reply], None], asked: frozenset[Any] | None) -> list[Reply]:
    """Let `fill` read each reply, refuse what nobody asked for or came twice, then those laid out unlike most."""
    seen: set[Any] = set()
    for reply in replies:
        try:
            if asked is not None and reply.client not in asked:
                raise Unusable(f"{short(reply.client)} was not asked in this round")
            if reply.client in seen:
                raise Unusable("another reply of the same client came first")
            seen.add(reply.client)
            fill(reply)
        except Unusable as fault:
            reply.fault = str(fault)
        except Exception as error:  # a client's content may do anything when it is read
            reply.fault = f"cannot be read: {type(error).__name__}: {short(error)}"
    _refuse_odd_forms(replies)
    return replies


def read_metrics(metrics: Any, weight_key: str) -> tuple[float, dict[str, Any], MetricForm]:
    """Return the claimed quantity, all metrics and their form."""
    if weight_key not in metrics:
        raise Unusable(f"{short(weight_key)} is missing from its metrics")
    claim = read_claim(metrics[weight_key], weight_key)
    lengths: list[tuple[str, int | None]] = []
    for key, value in metrics.items():
        lengths.append((key, len(value) if isinstance(value, list) else None))
        if key != weight_key:
            _check_metric(key, value)
    return claim, dict(metrics), tuple(sorted(lengths, key=lambda pair: pair[0]))


def read_claim(claim: Any, weight_key: str) -> float:
    """Return a claimed quantity as a number in [1, 2**53]."""
    name = short(weight_key)
    if isinstance(claim, bool | np.bool_) or not isinstance(claim, numbers.Real):
        raise Unusable(f"{name} is of type {type(claim).__name__}, not a number")
    try:
        value = float(claim)
    except OverflowError:
        value = math.inf
    if not 1 <= value <= LARGEST_CLAIM:
        raise Unusable(f"{name} is {value:g}, not a number from 1 to 2**53")
    return value


def _only_record(content: RecordDict, kind: type, what: str) -> tuple[str, Any]:
    # Not by content.array_records: that makes reference cycles, which keep all arrays until the garbage collector runs.
    found = [(name, record) for name, record in content.items() if isinstance(record, kind)]
    if len(found) != 1:
        raise Unusable(f"{len(found)} {what}s instead of 1")
    return found[0]


def _contents(arrays: Any) -> dict[str, bytes]:
    for name, array in arrays.items():
        if array.stype != "numpy.ndarray":
            raise Unusable(f"array {short(name)} is serialised as {short(array.stype)}, not numpy.ndarray")
    return {name: array.data for name, array in arrays.items()}


def _check_metric(key: str, value: Any) -> None:
    values = value if isinstance(value, list) else [value]
    for number in values:
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise Unusable(f"metric {short(key)} holds {type(number).__name__}, not numbers")
    try:
        finite = all(map(math.isfinite, values))
    except OverflowError:
        finite = False
    if not finite:
        raise Unusable(f"metric {short(key)} is not finite")


def _refuse_odd_forms(replies: list[Reply]) -> None:
    """Drop replies that are laid out unlike most: averages need one form, and a lone client must not choose it."""
    forms = Counter(reply.form for reply in replies if not reply.fault)
    if len(forms) < 2:
        return
    (arrays, metrics, values), _ = forms.most_common(1)[0]
    for reply in replies:
        if reply.fault or reply.form == (arrays, metrics, values):
            continue
        if reply.form[0] != arrays:
            reply.fault = f"array record is named {short(reply.form[0])}, most clients' {short(arrays)}"
        elif reply.form[1] != metrics:
            reply.fault = f"metric record is named {short(reply.form[1])}, most clients' {short(metrics)}"
        else:
            reply.fault = _metrics_fault(dict(reply.form[2]), dict(values))


def _metrics_fault(found: dict[str, int | None], expected: dict[str, int | None]) -> str:
    for key in expected:
        if key not in found:
            return f"lacks metric {short(key)}, which most clients sent"
    for key, length in found.items():
        if key not in expected:
            return f"has metric {short(key)}, which most clients did not send"
        if length != expected[key]:
            return f"metric {short(key)} is {_length_text(length)}, most clients' {_length_text(expected[key])}"
    return "metrics are laid out unlike most clients'"


def _length_text(length: int | None) -> str:
    return "one number" if length is None else f"a list of {length}"
