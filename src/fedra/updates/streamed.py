"""Rows of which only some columns at a time are in memory: what kernels read where updates are files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from fedra.kernels.parts import PairGroup, Part, Positions, groups_of, pair_groups
from fedra.kernels.rows import Rows, as_rows
from fedra.kernels.sums import MIXED_TILE
from fedra.kernels.threads import column_blocks
from fedra.server.faults import Unusable
from fedra.updates.passes import Passes
from fedra.updates.readers import Reader, UpdateReader, VectorReader

T = TypeVar("T")
Array = npt.NDArray[Any]

# Of all rows together, for each thread: what the caches nearly hold, read in pieces that are long enough.
_PART_BYTES = 8 << 20
# Some kernels want whole blocks of columns, of as few rows as they like.
_GROUP_BYTES = 64 << 20


class StreamedRows(Rows):
    """n rows that readers bring into memory part by part; kernels get from them the bits that rows in memory give.

    Whatever wants a whole vector (iterating, ``np.asarray``) reads it, and has it in memory.
    """

    def __init__(self, readers: Sequence[Reader], passes: Passes) -> None:
        object.__setattr__(self, "readers", tuple(readers))
        object.__setattr__(self, "passes", passes)
        object.__setattr__(self, "dimension", passes.dimension)
        object.__setattr__(self, "dtype", passes.dtype)

    readers: tuple[Reader, ...]
    passes: Passes

    # Passes are numbered as they begin, and found again by their numbers.
    one_pass_at_a_time: ClassVar[bool] = True

    def __len__(self) -> int:
        return len(self.readers)

    def __iter__(self) -> Iterator[Array]:
        for reader in self.readers:
            vector = np.empty(self.dimension, dtype=self.dtype)
            for start, stop in column_blocks(self.dimension, 1):
                self._load([reader], start, stop, vector[np.newaxis, start:stop])
            self.passes.check()
            yield vector

    @property
    def holders(self) -> tuple[Array, ...]:
        """All rows in memory."""
        return tuple(self)

    @property
    def addresses(self) -> npt.NDArray[np.uintp]:
        """Rows that are not in memory have no address."""
        raise ValueError(
            "this needs all updates in memory, and they are files; use a rule of fedra.RULES, or load the updates"
        )

    def take(self, positions: Positions) -> StreamedRows:
        """Return the rows at these positions."""
        return StreamedRows([self.readers[position] for position in positions], self.passes)

    def with_row(self, vector: Array) -> StreamedRows:
        """Return the rows and one more."""
        return StreamedRows([*self.readers, VectorReader(vector, self.dtype, self.passes.store)], self.passes)

    def mixed(self, matrix: npt.NDArray[np.float64]) -> StreamedRows:
        """Return ``matrix @ rows``, each row made of the others when it is read."""
        mix = _Mix(self, matrix)
        return StreamedRows([_MixedReader(mix, number) for number in range(len(matrix))], self.passes)

    def __getitem__(self, position: int) -> Array:
        """Return one row as a vector, in memory or on disk as results are."""
        out, one = self.new_vector(), self.take(np.array([position]))

        def work(start: int, stop: int) -> None:
            for rows, first, _ in one._columns_of(start, stop):
                self.passes.store.write(out, first, rows[0])

        for _ in one.over(work, column_blocks(self.dimension, 1), None):
            pass
        return out

    def new_vector(self) -> Array:
        """Return a vector that results are written to, in memory or on disk."""
        return self.passes.new_vector()

    def over(self, work: Callable[[int, int], T], blocks: list[tuple[int, int]], threads: int | None) -> Iterator[T]:
        """Yield `work(start, stop)` for each block; what an earlier process has done is not done again."""
        return self.passes.over(work, blocks, threads, places=sorted(self._places()))

    def parts(
        self, start: int, stop: int, multiple: int, out: Array | None = None, *, stored: bool = False
    ) -> Iterator[Part]:
        """Yield columns start..stop as they are read; what was written to a part's `out` then goes to `out`.

        Halves are widened while they are read, whatever `stored` is.
        """
        # One that is there twice, as a filling that counts for nothing, is read once.
        distinct = list({id(reader): reader for reader in self.readers}.values())
        places = {id(reader): place for place, reader in enumerate(distinct)}
        tiles = max(1, _PART_BYTES // (len(distinct) * self.dtype.itemsize) // multiple)
        width = min(tiles * multiple, stop - start)
        buffer = np.empty((len(distinct), width), dtype=self.dtype)
        rows = np.array([places[id(reader)] for reader in self.readers], dtype=np.uintp)
        addresses = np.uintp(buffer.ctypes.data) + rows * np.uintp(buffer.strides[0])
        results = None if out is None else np.empty(width, dtype=self.dtype)
        for first in range(start, stop, width):
            last = min(first + width, stop)
            self._load(distinct, first, last, buffer[:, : last - first])
            for reader in distinct if last < stop else ():
                reader.expect(last, min(last + width, stop))
            yield Part(addresses, 0, last - first, self.like, results)
            if out is not None and results is not None:
                self.passes.store.write(out, first, results[: last - first])

    def groups(self, width: int) -> list[Positions]:
        """Return all positions in groups of which `width` columns may be in memory at once."""
        return groups_of(len(self), self._group_size(width))

    def pair_groups(self, pairs: npt.NDArray[np.intp], width: int) -> Iterator[PairGroup]:
        """Yield pairs of positions in groups of rows of which `width` columns may be in memory at once."""
        return pair_groups(pairs, len(self), self._group_size(width))

    def columns(self, draws: Sequence[npt.NDArray[np.intp]]) -> list[Rows]:
        """Return copies of the rows that have only some columns, in one pass for all draws; each draw ascends."""
        found = [np.empty((len(self), len(draw)), dtype=self.dtype) for draw in draws]

        def within(draw: npt.NDArray[np.intp], first: int, last: int) -> slice:
            begin, end = np.searchsorted(draw, [first, last])
            return slice(int(begin), int(end))

        def work(start: int, stop: int) -> Array:
            picked: list[list[Array]] = [[] for _ in draws]
            for rows, first, last in self._columns_of(start, stop):
                for place, draw in enumerate(draws):
                    picked[place].append(rows[:, draw[within(draw, first, last)] - first])
            return np.concatenate([part for parts in picked for part in parts], axis=1)

        blocks = column_blocks(self.dimension, 1)
        for (start, stop), values in zip(blocks, self.over(work, blocks, None), strict=True):
            done = 0
            for target, draw in zip(found, draws, strict=True):
                place = within(draw, start, stop)
                count = place.stop - place.start
                target[:, place] = values[:, done : done + count]
                done += count
        return [as_rows(matrix) for matrix in found]

    def _columns_of(self, start: int, stop: int) -> Iterator[tuple[Array, int, int]]:
        width = max(1, min(stop - start, _PART_BYTES // (len(self) * self.dtype.itemsize)))
        buffer = np.empty((len(self), width), dtype=self.dtype)
        for first in range(start, stop, width):
            last = min(first + width, stop)
            self._load(self.readers, first, last, buffer[:, : last - first])
            yield buffer[:, : last - first], first, last

    def _group_size(self, width: int) -> int:
        return max(1, _GROUP_BYTES // max(1, width * self.dtype.itemsize))

    def _places(self) -> set[int]:
        """Return the clients whose files these rows are read from."""
        mixes = {id(reader.mix): reader.mix for reader in self.readers if isinstance(reader, _MixedReader)}
        found = {reader.place for reader in self.readers if reader.place is not None}
        return found.union(*(mix.rows._places() for mix in mixes.values()))

    def _load(self, readers: Sequence[Reader], first: int, last: int, buffer: Array) -> None:
        """Read columns of rows and look at what was read; a row that cannot be read is zeros, and rejected."""
        mixes: dict[int, list[int]] = {}
        for place, reader in enumerate(readers):
            if isinstance(reader, _MixedReader):
                mixes.setdefault(id(reader.mix), []).append(place)
        for places in mixes.values():
            members = [reader for reader in (readers[place] for place in places) if isinstance(reader, _MixedReader)]
            buffer[places] = members[0].mix.columns([member.number for member in members], first, last)
        plain = [place for place, reader in enumerate(readers) if not isinstance(reader, _MixedReader)]
        if len(plain) == len(readers):
            self._load_files(readers, first, last, buffer)
        else:
            for place in plain:
                self._load_files([readers[place]], first, last, buffer[place : place + 1])

    def _load_files(self, readers: Sequence[Reader], first: int, last: int, buffer: Array) -> None:
        sent: Array | None = None
        for reader, target in zip(readers, buffer, strict=True):
            try:
                if isinstance(reader, UpdateReader):
                    reader.model.read(first, last, target)
                    if sent is None:
                        # Once for all rows; where it cannot be read, that is nobody's fault but the caller's.
                        sent = self.passes.base_part(reader.base, first, last)
                    UpdateReader.subtract(sent, target)
                else:
                    reader.read(first, last, target)
            except Unusable as fault:
                target[...] = 0
                self.passes.reject(reader.place, str(fault))
        self.passes.look(readers, first, last, buffer)


class _Mix:
    """Rows that are weighted sums of others, made of them a range of columns at a time."""

    def __init__(self, rows: StreamedRows, matrix: npt.NDArray[np.float64]) -> None:
        self.rows = rows
        self._matrix = np.ascontiguousarray(matrix, dtype=np.float64)

    def columns(self, numbers: Sequence[int], first: int, last: int) -> Array:
        """Return columns first..last of some of the sums."""
        from fedra.kernels import sums_compiled as compiled

        dtype = self.rows.dtype
        loaded = np.empty((len(self.rows), last - first), dtype=dtype)
        self.rows._load(self.rows.readers, first, last, loaded)
        addresses = np.uintp(loaded.ctypes.data) + np.arange(len(loaded), dtype=np.uintp) * np.uintp(loaded.strides[0])
        out = np.empty((len(numbers), last - first), dtype=dtype)
        compiled.mixed_rows_block(addresses, self._matrix[list(numbers)], 0, last - first, np.empty(MIXED_TILE), out)
        return out


class _MixedReader:
    """One of the sums of a `_Mix`; those of one mix are read together."""

    place = None

    def __init__(self, mix: _Mix, number: int) -> None:
        self.mix, self.number = mix, number

    def read(self, first: int, last: int, target: Array) -> None:
        """Write columns first..last."""
        target[...] = self.mix.columns([self.number], first, last)[0]

    def expect(self, first: int, last: int) -> None:
        """Let the system fetch these columns."""
        if self.number == 0:
            for reader in self.mix.rows.readers:
                reader.expect(first, last)
