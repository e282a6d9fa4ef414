"""Taking a reply's arrays while their values are in a flat vector, and giving them back in the server's form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt
from flwr.app import Array, ArrayRecord, MetricRecord, RecordDict

from fedra.flower.canonical import arrange, canonical_array, canonical_npy
from fedra.flower.model import Entry, ModelForm
from fedra.flower.replies import Reply


class Loan:
    """A reply's content without the values that its flat vector holds too: both at once would double the memory.

    The message is given new content and its old records are only let go, never changed: somebody else may hold them.
    """

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
        content = reply.message.content
        reply.message.content = RecordDict(
            {name: record for name, record in content.items() if name != reply.layout.arrays}
        )

    def restore(
        self, vector: npt.NDArray[Any], sent: Mapping[str, Array], metrics: MetricRecord, configs: list[str]
    ) -> None:
        """Give the message its values back, with these metrics, and of its config records those that are named."""

        def array(entry: Entry) -> Array:
            data = self._own.get(entry.name)
            return canonical_array(
                entry, canonical_npy(entry, vector[entry.start : entry.stop]) if data is None else data
            )

        records: dict[str, Any] = dict.fromkeys(self._reply.handed_as)
        kept = self._reply.message.content
        records |= {name: kept[name] for name in configs if name not in records}
        arrays_name, metrics_name = self._reply.handed_as
        records[arrays_name] = ArrayRecord(dict(arrange(self._form, array, sent)))
        records[metrics_name] = metrics
        self._reply.message.content = RecordDict(records)
