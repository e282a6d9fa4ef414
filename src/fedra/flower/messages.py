"""Flower's messages, read and written: what strategies are given is in the server's own form, whatever a client chose.

Of what a client sent only the values of trained entries are used. Headers, types, memory order, the order of the
arrays and the fields that describe them are the server's own, and so are entries that are not trained: nobody scores
those, so nobody's may count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy.typing as npt
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict

from fedra.flower.npy import canonical_npy, view_npy
from fedra.server.faults import Unusable, short
from fedra.server.form import Entry, ModelForm
from fedra.server.layout import Kinds, Layout, config_kinds, shared_values
from fedra.server.metrics import read_metrics
from fedra.server.records import RoundRecord
from fedra.server.replies import Reply, read_all
from fedra.server.weighing import plain_claim

T = TypeVar("T")

# Flower's own strategies use two.
_MOST_RECORDS = 100


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
            reply.views = model.read(_contents(arrays), view_npy)
        metrics_name, metrics = _only_record(message.content, MetricRecord, "metric record")
        if weight_key not in metrics:
            raise Unusable(f"{short(weight_key)} is missing from its metrics")
        reply.take_claim(metrics[weight_key], weight_key)
        reply.metrics, kinds = read_metrics(metrics, leave_out=weight_key)
        configs = _configs(message.content)
        reply.layout = Layout(arrays=arrays_name, metrics=metrics_name, values=kinds, configs=configs)

    replies = [Reply(client=_node(message), message=message) for message in messages]
    own = Layout(arrays=array_key, metrics="metrics" if array_key != "metrics" else "numbers")
    return read_all(replies, fill, asked, own)


def sent_array_key(messages: Iterable[Message]) -> str:
    """Return the name of the array record that a round's messages carry."""
    for message in messages:
        for name, record in message.content.items():
            if isinstance(record, ArrayRecord):
                return name
    return "arrays"


def arrange(form: ModelForm, trained: Callable[[Entry], T], sent: Mapping[str, T]) -> Iterator[tuple[str, T]]:
    """Yield a reply's arrays in the server's order: trained ones as given, all others as the server `sent` them."""
    for entry in form.entries:
        yield entry.name, trained(entry) if entry.trained else sent[entry.name]


def drop_arrays(reply: Reply) -> None:
    """Take a reply's arrays from its message: they were read, and all replies' together are large.

    The message is given new content and its old records are only let go, never changed: somebody else may hold them.
    """
    content = reply.message.content
    reply.message.content = RecordDict(
        {name: record for name, record in content.items() if name != reply.layout.arrays}
    )


class Loan:
    """A reply's content without the values that its flat vector holds too: both at once would double the memory."""

    def __init__(self, reply: Reply, form: ModelForm) -> None:
        self._reply = reply
        self._form = form
        trained = [entry for entry in form.entries if entry.trained]
        # What the vector does not hold exactly as it is handed on, because its type is another.
        self._own = {
            entry.name: canonical_npy(entry, view)
            for entry, view in zip(trained, reply.views, strict=True)
            if entry.widest != form.dtype
        }
        reply.views = []
        drop_arrays(reply)

    def restore(
        self, vector: npt.NDArray[Any], sent: Mapping[str, Array], metrics: MetricRecord, configs: list[str]
    ) -> None:
        """Give the message its values back, with these metrics, and of its config records those that are named."""

        def array(entry: Entry) -> Array:
            data = self._own.get(entry.name)
            data = canonical_npy(entry, vector[entry.start : entry.stop]) if data is None else data
            return Array(str(entry.widest), entry.shape, "numpy.ndarray", data)

        records: dict[str, Any] = dict.fromkeys(self._reply.handed_as)
        kept = self._reply.message.content
        records |= {name: kept[name] for name in configs if name not in records}
        arrays_name, metrics_name = self._reply.handed_as
        records[arrays_name] = ArrayRecord(dict(arrange(self._form, array, sent)))
        records[metrics_name] = metrics
        self._reply.message.content = RecordDict(records)


def claimed_metrics(kept: Sequence[Reply], weight_key: str, claims: Sequence[int] | None = None) -> list[MetricRecord]:
    """Return the metrics that all kept replies share, each under its claim, or under the ones given."""
    return _metric_records(kept, claims or [plain_claim(reply.claim) for reply in kept], weight_key)


def weighted_contents(kept: Sequence[Reply], weights: Sequence[float], weight_key: str) -> list[RecordDict]:
    """Return the kept replies' metrics, each under the rule's weight instead of its claim.

    Weights are in units of examples (they add up to what the kept clients claim in all), for functions that print them.
    """
    total = sum(weights)
    if not 0 < total < math.inf:  # a rule that somebody wrote
        weights, total = [1.0] * len(kept), float(len(kept))
    unit = sum(reply.claim for reply in kept) / total
    records = _metric_records(kept, [weight * unit for weight in weights], weight_key)
    return [RecordDict({reply.handed_as[1]: record}) for reply, record in zip(kept, records, strict=True)]


def round_figures(record: RoundRecord) -> dict[str, int]:
    """Return what a round's metrics say of the defence: how many were kept and rejected, and whether it was skipped."""
    figures = {"fedra-kept": record.kept, "fedra-rejected": record.rejected, "fedra-skipped": int(record.skipped)}
    if record.num_malicious is not None:
        figures["fedra-num-malicious"] = record.num_malicious
    return figures


def _metric_records(kept: Sequence[Reply], weights: Sequence[float], weight_key: str) -> list[MetricRecord]:
    return [
        MetricRecord({**values, weight_key: weight})
        for values, weight in zip(shared_values(kept), weights, strict=True)
    ]


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
