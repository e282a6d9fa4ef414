"""Reading replies, each alone: what cannot be used is dropped with a reason and never raises."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict

from fedra.flower.claims import read_claim, read_metrics
from fedra.flower.faults import Unusable, short
from fedra.flower.layout import Kinds, Layout, config_kinds, settle_layout
from fedra.flower.model import ModelForm

# Flower's own strategies use two.
_MOST_RECORDS = 100


@dataclass(eq=False, kw_only=True)
class Reply:
    """One client's reply: what it claims and sent, or in `fault` why it cannot be used.

    `asked`: whether the server asked its sender. `metrics` are all but the claim. `layout` is how it came; `handed_as`
    are the names under which its array record and metric record are handed on.
    """

    client: Any
    message: Any
    fault: str = ""
    asked: bool = True
    claim: float = math.nan
    metrics: dict[str, Any] = field(default_factory=dict)
    views: list[npt.NDArray[Any]] = field(default_factory=list)
    layout: Layout = field(default_factory=Layout)
    handed_as: tuple[str, str] = ("", "")


def read_messages(
    messages: Iterable[Message],
    *,
    weight_key: str,
    asked: frozenset[int] | None,
    model: ModelForm | None,
    array_key: str = "arrays",
) -> list[Reply]:
    """Read a round's reply messages; `model` is None for evaluation, whose replies carry no arrays.

    `array_key` is the name of the array record that the server sent.
    """

    def fill(reply: Reply) -> None:
        message = reply.message
        if message.has_error():
            raise Unusable(f"replied with error {short(message.error.code)}: {short(message.error.reason)}")
        if len(message.content) > _MOST_RECORDS:
            raise Unusable(f"{len(message.content)} records, more than {_MOST_RECORDS}")
        arrays_name = ""
        if model is not None:
            arrays_name, arrays = _only_record(message.content, ArrayRecord, "array record")
            model.check_names(arrays)
            reply.views = model.read(_contents(arrays))
        metrics_name, metrics = _only_record(message.content, MetricRecord, "metric record")
        if weight_key not in metrics:
            raise Unusable(f"{short(weight_key)} is missing from its metrics")
        reply.claim = read_claim(metrics[weight_key], weight_key)
        reply.metrics, kinds = read_metrics(metrics, leave_out=weight_key)
        configs = _configs(message.content)
        reply.layout = Layout(arrays=arrays_name, metrics=metrics_name, values=kinds, configs=configs)

    replies = [Reply(client=_node(message), message=message) for message in messages]
    own = Layout(arrays=array_key, metrics="metrics" if array_key != "metrics" else "numbers")
    return read_all(replies, fill, asked, own)


def read_all(
    replies: list[Reply], fill: Callable[[Reply], None], asked: frozenset[Any] | None, own: Layout
) -> list[Reply]:
    """Let `fill` read each reply, refuse what nobody asked for or came twice, then those laid out unlike most."""
    seen: set[Any] = set()
    for reply in replies:
        try:
            if asked is not None and reply.client not in asked:
                reply.asked = False
                raise Unusable(f"{short(reply.client)} was not asked in this round")
            if reply.client in seen:
                raise Unusable("another reply of the same client came first")
            seen.add(reply.client)
            fill(reply)
        except Unusable as fault:
            reply.fault = str(fault)
        except Exception as error:  # a client's content may do anything when it is read
            reply.fault = f"cannot be read: {type(error).__name__}: {short(error)}"
    settle_layout(replies, own)
    return replies


def sent_array_key(messages: Iterable[Message]) -> str:
    """Return the name of the array record that a round's messages carry."""
    for message in messages:
        for name, record in message.content.items():
            if isinstance(record, ArrayRecord):
                return name
    return "arrays"


def _node(message: Message) -> int | str:
    """Return who replied; what is no number is no node, and must not reach what looks nodes up or writes them down."""
    node: Any = message.metadata.src_node_id
    return node if type(node) is int and abs(node) < 2**64 else short(node)


def _only_record(content: RecordDict, kind: type, what: str) -> tuple[str, Any]:
    # Not by content.array_records: that makes reference cycles, which keep all arrays until the garbage collector runs.
    found = [(name, record) for name, record in content.items() if isinstance(record, kind)]
    if len(found) != 1:
        raise Unusable(f"{len(found)} {what}s instead of 1")
    return found[0]


def _configs(content: RecordDict) -> tuple[tuple[str, Kinds], ...]:
    """Return the form of the config records; a record of no known kind is refused, since no content can hold it."""
    found = []
    for name, record in content.items():
        if not isinstance(name, str):
            raise Unusable(f"a record is named by a {type(name).__name__}, not by text")
        if isinstance(record, ConfigRecord):
            found.append((name, config_kinds(record)))
        elif not isinstance(record, ArrayRecord | MetricRecord):
            raise Unusable(f"record {short(name)} is of type {type(record).__name__}, which is no record of Flower's")
    return tuple(sorted(found))


def _contents(arrays: Any) -> dict[str, bytes]:
    for name, array in arrays.items():
        if array.stype != "numpy.ndarray":
            raise Unusable(f"array {short(name)} is serialised as {short(array.stype)}, not numpy.ndarray")
    return {name: array.data for name, array in arrays.items()}
