"""Taking a reply's arrays while their values are in a flat vector, and giving them back bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from flwr.app import Array, ArrayRecord, RecordDict

from fedra.flower.model import ModelForm
from fedra.flower.replies import Reply


class Loan:
    """A reply's content without the values that its flat vector holds too: both at once would double the memory.

    The message is given new content and its old records are only let go, never changed: somebody else may hold them.
    """

    def __init__(self, reply: Reply, form: ModelForm) -> None:
        self._reply = reply
        self._form = form
        self._records: dict[str, Any] = dict(reply.message.content.items())
        arrays = self._records[reply.form[0]]
        trained = [entry for entry in form.entries if entry.trained]
        self._parts = {entry.name: (entry.start, entry.stop) for entry in trained}
        views = dict(zip((entry.name for entry in trained), reply.views, strict=True))
        self._arrays: dict[str, tuple[Array, bytes | None]] = {}
        for name, array in arrays.items():
            header = _header(array.data, views[name], form.dtype) if name in views else None
            kept = array if header is None else Array(array.dtype, tuple(array.shape), array.stype, b"")
            self._arrays[name] = (kept, header)
        self._records[reply.form[0]] = None
        reply.views = []
        rest = {name: record for name, record in self._records.items() if record is not None}
        reply.message.content = RecordDict(rest)

    def restore(self, vector: npt.NDArray[Any]) -> None:
        """Give the message its arrays back."""
        arrays = ArrayRecord()
        for name, (array, header) in self._arrays.items():
            if header is not None:
                start, stop = self._parts[name]
                array.data = b"".join((header, vector[start:stop].data))
            arrays[name] = array
        self._records[self._reply.form[0]] = arrays
        self._reply.message.content = RecordDict(self._records)


def _header(data: bytes, view: npt.NDArray[Any], dtype: np.dtype[Any]) -> bytes | None:
    """Return what precedes the values, where a flat vector of `dtype` holds exactly the bytes that follow."""
    if view.dtype != dtype or not view.size:
        return None
    offset = len(data) - view.nbytes
    start = np.frombuffer(data, dtype=np.uint8).ctypes.data
    return data[:offset] if view.ctypes.data == start + offset else None
