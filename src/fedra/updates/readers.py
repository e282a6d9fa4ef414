"""Columns of one row, from wherever they are: tensors in a client's files, or a vector."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fedra.updates.formats import Contents
from fedra.updates.sources import SourceFile, as_bytes
from fedra.updates.store import Store
from fedra.updates.tensors import Form, Kind, widened


class Reader(Protocol):
    """Reads columns of a row; `place` is the client whose row it is, None where it is nobody's."""

    @property
    def place(self) -> int | None:
        """The client's position."""
        ...

    def read(self, first: int, last: int, target: npt.NDArray[Any]) -> None:
        """Write columns first..last to `target`; `Unusable` where the client's files do not give them."""
        ...

    def expect(self, first: int, last: int) -> None:
        """Get ready for these columns to be read next."""
        ...


@dataclass(frozen=True, kw_only=True)
class _Segment:
    """Columns that lie in a file one after the other, of one kind."""

    start: int
    stop: int
    file: SourceFile
    offset: int
    kind: Kind

    def at(self, column: int) -> int:
        """Return where in the file a column begins."""
        return self.offset + (column - self.start) * self.kind.itemsize


class TensorReader:
    """A client's row: the floats of its tensors, in the order of the form."""

    def __init__(self, contents: Contents, form: Form, place: int | None) -> None:
        self.place = place
        self.contents, self.form = contents, form
        self._segments = _segments(contents, form)
        self._starts = [segment.start for segment in self._segments]

    def read(self, first: int, last: int, target: npt.NDArray[Any]) -> None:
        """Write columns first..last to `target`, widened to its type."""
        for segment, begin, end in self._overlapping(first, last):
            values = target[begin - first : end - first]
            if segment.kind.raw == target.dtype:
                segment.file.read_into(as_bytes(values), segment.at(begin))
            else:
                raw = np.empty(end - begin, dtype=segment.kind.raw)
                segment.file.read_into(as_bytes(raw), segment.at(begin))
                widened(raw, segment.kind, values)

    def expect(self, first: int, last: int) -> None:
        """Let the system fetch these columns."""
        for segment, begin, end in self._overlapping(first, last):
            segment.file.expect(segment.at(begin), (end - begin) * segment.kind.itemsize)

    def _overlapping(self, first: int, last: int) -> list[tuple[_Segment, int, int]]:
        found = []
        place = bisect_right(self._starts, first) - 1
        while first < last:
            segment = self._segments[place]
            end = min(last, segment.stop)
            found.append((segment, first, end))
            first = end
            place += 1
        return found


def _segments(contents: Contents, form: Form) -> Sequence[_Segment]:
    """Return the columns' places, those that follow one another in the same file as one."""
    found: list[_Segment] = []
    for slot in form.trained:
        if slot.start == slot.stop:
            continue
        tensor = contents.tensors[slot.name]
        file = contents.files[tensor.file]
        last = found[-1] if found else None
        if last and last.file is file and last.kind == tensor.kind and last.at(last.stop) == tensor.offset:
            found[-1] = _Segment(start=last.start, stop=slot.stop, file=file, offset=last.offset, kind=last.kind)
        else:
            found.append(_Segment(start=slot.start, stop=slot.stop, file=file, offset=tensor.offset, kind=tensor.kind))
    return found


class UpdateReader:
    """A row that is a model less the model that all began with."""

    def __init__(self, model: TensorReader, base: TensorReader) -> None:
        self.place = model.place
        self.model, self.base = model, base

    def read(self, first: int, last: int, target: npt.NDArray[Any]) -> None:
        """Write the difference over columns first..last."""
        self.model.read(first, last, target)
        sent = np.empty_like(target)
        self.base.read(first, last, sent)
        self.subtract(sent, target)

    @staticmethod
    def subtract(sent: npt.NDArray[Any], target: npt.NDArray[Any]) -> None:
        """Take what was sent from a model."""
        with np.errstate(all="ignore"):  # what overflows or is not finite stays so, and is found by screening
            np.subtract(target, sent, out=target)

    def expect(self, first: int, last: int) -> None:
        """Let the system fetch these columns."""
        self.model.expect(first, last)


class VectorReader:
    """A row that is a vector, cut to the range of the rows' type."""

    place = None

    def __init__(self, vector: npt.NDArray[Any], dtype: np.dtype[Any], store: Store) -> None:
        self.vector, self._store = vector, store
        self._largest = np.finfo(dtype).max

    def read(self, first: int, last: int, target: npt.NDArray[Any]) -> None:
        """Write columns first..last."""
        target[...] = np.clip(self._store.read(self.vector, first, last), -self._largest, self._largest)

    def expect(self, first: int, last: int) -> None:
        """Nothing is to be fetched."""
