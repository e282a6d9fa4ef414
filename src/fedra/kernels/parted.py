"""Rows in several pieces: each client's arrays where they lie, read as one vector without being copied into one."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from fedra.kernels.parts import PairGroup, Part, Positions, groups_of, pair_groups
from fedra.kernels.rows import Rows, as_rows
from fedra.kernels.threads import over_blocks

T = TypeVar("T")
Array = npt.NDArray[Any]

# Where a kernel wants columns of several pieces at once they are copied, of so many rows as fit into this.
_GROUP_BYTES = 16 << 20


class PartedRows(Rows):
    """n rows, each of arrays that follow one another; kernels get from them the bits that whole vectors give.

    All arrays are of `dtype`, one-dimensional and contiguous, and those of one row as long as those of any other. A
    range of columns within one array is read in place; the few tiles across an edge are copied. Whatever wants a whole
    vector (iterating, ``np.asarray``) gets a copy.
    """

    pieces: tuple[tuple[Array, ...], ...]
    edges: tuple[int, ...]
    # Of each piece and row: where column 0 would be, were the piece the whole row.
    bases: npt.NDArray[np.uintp]

    def __init__(self, pieces: Sequence[Sequence[Array]], dtype: np.dtype[Any]) -> None:
        held = tuple(tuple(piece for piece in row if piece.size) for row in pieces)
        sizes = [piece.size for piece in held[0]] if held else []
        for row in held:
            if [piece.size for piece in row] != sizes or any(not is_piece(piece, dtype) for piece in row):
                raise ValueError(f"rows in pieces need contiguous arrays of {dtype}, of the same lengths in each row")
        edges = tuple(np.cumsum([0, *sizes]).tolist())
        addresses = [[piece.ctypes.data for piece in row] for row in held]
        starts = np.array(edges[:-1], dtype=np.uintp) * np.uintp(dtype.itemsize)
        with np.errstate(over="ignore"):
            bases = np.array(addresses, dtype=np.uintp).reshape(len(held), len(sizes)) - starts
        self._set(held, edges, np.ascontiguousarray(bases.T), dtype)

    def _set(
        self,
        pieces: tuple[tuple[Array, ...], ...],
        edges: tuple[int, ...],
        bases: npt.NDArray[np.uintp],
        dtype: np.dtype[Any],
    ) -> None:
        about = {"pieces": pieces, "edges": edges, "bases": bases, "dimension": edges[-1], "dtype": dtype}
        for name, value in about.items():
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.pieces)

    def __iter__(self) -> Iterator[Array]:
        for row in self.pieces:
            yield np.concatenate(row) if row else np.empty(0, dtype=self.dtype)

    @property
    def holders(self) -> tuple[Array, ...]:
        """All rows as vectors, which are copies."""
        return tuple(self)

    @property
    def addresses(self) -> npt.NDArray[np.uintp]:
        """Rows in pieces have no one address."""
        raise ValueError("these rows lie in pieces; ask for their columns by parts, or for np.asarray(rows)")

    def part(self, start: int, stop: int) -> Rows:
        """Return rows whose columns start..stop can be read."""
        number = bisect_right(self.edges, start) - 1
        if stop > self.edges[min(number + 1, len(self.edges) - 1)]:
            return self._copied(start, stop)
        holders = tuple(row[number] for row in self.pieces)
        return Rows(holders, self.bases[number], self.dimension, self.dtype)

    def take(self, positions: Positions) -> PartedRows:
        """Return the rows at these positions, still in place."""
        found = object.__new__(PartedRows)
        found._set(
            tuple(self.pieces[position] for position in positions),
            self.edges,
            np.ascontiguousarray(self.bases[:, positions]),
            self.dtype,
        )
        return found

    def over(self, work: Callable[[int, int], T], blocks: list[tuple[int, int]], threads: int | None) -> Iterator[T]:
        """Yield `work(start, stop)` for each block of columns, in their order."""
        return over_blocks(work, blocks, threads)

    def parts(
        self, start: int, stop: int, multiple: int, out: Array | None = None, *, stored: bool = False
    ) -> Iterator[Part]:
        """Yield columns start..stop: those within a piece where they lie, in whole tiles, others from a copy."""
        first = start
        while first < stop:
            number = bisect_right(self.edges, first) - 1
            edge = self.edges[number + 1]
            last = stop if edge >= stop else first + (edge - first) // multiple * multiple
            if last > first:
                yield Part(self.bases[number], first, last, self.like, out)
            else:
                last = min(first + multiple, stop)
                copied = self._copied(first, last)
                yield Part(copied.addresses, first, last, self.like, out)
            first = last

    def groups(self, width: int) -> list[Positions]:
        """Return all positions in groups of which `width` columns may be copied."""
        return groups_of(len(self), self._group_size(width))

    def pair_groups(self, pairs: npt.NDArray[np.intp], width: int) -> Iterator[PairGroup]:
        """Yield pairs of positions in groups of rows of which `width` columns may be copied."""
        return pair_groups(pairs, len(self), self._group_size(width))

    def with_row(self, vector: Array) -> PartedRows:
        """Return the rows and one more, cut as they are."""
        largest = np.finfo(self.dtype).max
        extra = np.clip(vector, -largest, largest).astype(self.dtype)
        return PartedRows([*self.pieces, np.split(extra, self.edges[1:-1])], self.dtype)

    def columns(self, draws: Sequence[npt.NDArray[np.intp]]) -> list[Rows]:
        """Return copies of the rows that have only some columns, once for each draw of those."""
        found = [np.empty((len(self), len(draw)), dtype=self.dtype) for draw in draws]
        for place, row in enumerate(self):
            for target, draw in zip(found, draws, strict=True):
                target[place] = row[draw]
        return [as_rows(matrix) for matrix in found]

    def _copied(self, first: int, last: int) -> Rows:
        """Return rows whose columns first..last can be read, from a copy of those."""
        copied = np.empty((len(self), last - first), dtype=self.dtype)
        done = first
        number = bisect_right(self.edges, first) - 1
        while done < last:
            begin, end = self.edges[number], min(self.edges[number + 1], last)
            for target, row in zip(copied, self.pieces, strict=True):
                target[done - first : end - first] = row[number][done - begin : end - begin]
            done, number = end, number + 1
        rows = np.arange(len(self), dtype=np.uintp) * np.uintp(copied.strides[0])
        # Addresses of column 0, were it there: kernels count columns from the first of the whole row.
        with np.errstate(over="ignore"):
            addresses = np.uintp(copied.ctypes.data) + rows - np.uintp(first * copied.itemsize)
        return Rows((copied,), addresses, self.dimension, self.dtype)

    def _group_size(self, width: int) -> int:
        return max(1, _GROUP_BYTES // max(1, width * self.dtype.itemsize))


def is_piece(array: Array, dtype: np.dtype[Any]) -> bool:
    """Tell whether kernels can read an array in place as a piece of a row of this type."""
    flags = array.flags
    return array.ndim == 1 and array.dtype == dtype and flags.c_contiguous and flags.aligned
