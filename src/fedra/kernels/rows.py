"""One view of a cohort's updates, whatever holds them: rows that kernels read in place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from fedra.kernels.halves import bfloat16_array, half_kind, mark, widened
from fedra.kernels.mapped import forget, is_mapped
from fedra.kernels.parts import PairGroup, Part, Positions
from fedra.kernels.threads import over_blocks

T = TypeVar("T")

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


@dataclass(frozen=True, eq=False)
class Rows:
    """n vectors of one length and one float type, and where they lie in memory.

    `holders` are the vectors themselves, one for each of the `addresses`; they keep the memory alive. Iterating gives
    them, ``np.asarray(rows)`` an (n, d) copy. `dtype` is what they are computed with; where `half` says that float16 or
    bfloat16 lies in memory, that is float32, and iterating gives float32 copies.
    """

    holders: tuple[npt.NDArray[Any], ...]
    addresses: npt.NDArray[np.uintp]
    dimension: int
    dtype: np.dtype[Any]
    half: str = ""

    # Whether passes over the rows must follow one another.
    one_pass_at_a_time: ClassVar[bool] = False

    def __len__(self) -> int:
        return len(self.addresses)

    @property
    def like(self) -> npt.NDArray[Any]:
        """An empty array that tells compiled code what type lies at the addresses."""
        return mark(self.half) if self.half else np.empty(0, dtype=self.dtype)

    def part(self, start: int, stop: int) -> Rows:
        """Return rows whose columns start..stop can be read as `dtype`: these, or a widened copy of those columns."""
        if not self.half:
            return self
        from fedra.kernels import halves_compiled as compiled

        wide = np.empty((len(self), stop - start), dtype=self.dtype)
        compiled.widen_block(self.addresses, start, self.like, wide)
        # Addresses of column 0, were it there: kernels count columns from the first of the whole row.
        first = np.array([row.ctypes.data for row in wide], dtype=np.uintp)
        with np.errstate(over="ignore"):
            addresses = first - np.uintp(start * self.dtype.itemsize)
        return Rows((wide,), addresses, self.dimension, self.dtype)

    def __iter__(self) -> Iterator[npt.NDArray[Any]]:
        return map(widened, self.holders)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """Stack the rows, for those who want a matrix; the kernels do not."""
        if copy is False:
            raise ValueError("rows lie apart, in memory or in files; a matrix of them is a copy")
        stacked = np.empty((len(self), self.dimension), dtype=self.dtype if dtype is None else dtype)
        for target, row in zip(stacked, self, strict=True):
            target[:] = row
        return stacked

    def take(self, positions: npt.NDArray[np.intp]) -> Rows:
        """Return the rows at these positions, still in place."""
        holders = tuple(self.holders[position] for position in positions)
        return Rows(holders, self.addresses[positions], self.dimension, self.dtype, self.half)

    def over(self, work: Callable[[int, int], T], blocks: list[tuple[int, int]], threads: int | None) -> Iterator[T]:
        """Yield `work(start, stop)` for each block of columns, in their order: one pass over the rows."""
        mapped = [holder for holder in self.holders if is_mapped(holder)]
        if not mapped:
            return over_blocks(work, blocks, threads)

        def read(start: int, stop: int) -> T:
            found = work(start, stop)
            # Else the memory of this process would grow with every row, although the files have it all.
            forget(mapped, start, stop)
            return found

        return over_blocks(read, blocks, threads)

    def parts(
        self, start: int, stop: int, multiple: int, out: npt.NDArray[Any] | None = None, *, stored: bool = False
    ) -> Iterator[Part]:
        """Yield columns start..stop of all rows in memory, cut at most at multiples of `multiple` from the start.

        They are of `dtype`; `stored` is for kernels that read what `like` tells, and takes halves as they are.
        """
        rows = self if stored else self.part(start, stop)
        yield Part(rows.addresses, start, stop, rows.like, out)

    def groups(self, width: int) -> list[Positions]:
        """Return all positions in groups of which `width` columns may be in memory at once."""
        return [np.arange(len(self))]

    def pair_groups(self, pairs: npt.NDArray[np.intp], width: int) -> Iterator[PairGroup]:
        """Yield pairs of positions in groups of rows of which `width` columns may be in memory at once."""
        yield PairGroup(slice(None), np.arange(len(self)), pairs)

    def new_vector(self) -> npt.NDArray[Any]:
        """Return a vector of the rows' length and type, of zeros, to write results into by `parts`."""
        return np.zeros(self.dimension, dtype=self.dtype)

    def with_row(self, vector: npt.NDArray[Any]) -> Rows:
        """Return the rows and one more; a float64 beyond float32's range is cut to it where the rows are float32."""
        largest = np.finfo(self.dtype).max
        extra = np.clip(vector, -largest, largest).astype(self.dtype)
        return rows_from_vectors([*self, extra], self.dimension, self.dtype)

    def mixed(self, matrix: npt.NDArray[np.float64]) -> Rows | None:
        """Return ``matrix @ rows`` where that need not be in memory at once; None where it can be."""
        return None

    def columns(self, draws: Sequence[npt.NDArray[np.intp]]) -> list[Rows]:
        """Return copies of the rows that have only some columns, once for each draw of those."""
        return [as_rows([np.asarray(holder)[draw] for holder in self.holders]) for draw in draws]


def as_array(value: Any) -> npt.NDArray[Any]:
    """Return `value` as a NumPy array, without a copy where it offers `__array__` or DLPack."""
    if hasattr(value, "__dlpack__"):
        if not isinstance(value, np.ndarray) and str(getattr(value, "dtype", "")).endswith("torch.bfloat16"):
            return bfloat16_array(value)  # NumPy reads no bfloat16
        if not hasattr(value, "__array__"):
            return np.from_dlpack(value)
    return np.asarray(value)


def readable(vector: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return the vector as kernels can read it: itself where possible, else a contiguous copy in `dtype`."""
    return np.require(vector, dtype=dtype, requirements=["C", "A"])


def rows_from_vectors(vectors: Sequence[npt.NDArray[Any]], dimension: int, dtype: np.dtype[Any]) -> Rows:
    """Gather 1-D vectors of equal length; nothing is stacked.

    Where all are float16, or all bfloat16, and `dtype` is float32, they stay what they are; else each is made `dtype`.
    """
    kinds = {half_kind(vector.dtype) for vector in vectors}
    half = kinds.pop() if len(kinds) == 1 and dtype == np.float32 else ""
    holders = tuple(
        readable(vector, vector.dtype.newbyteorder("=") if half == "float16" else vector.dtype)
        if half
        else readable(widened(vector), dtype)
        for vector in vectors
    )
    addresses = np.array([holder.ctypes.data for holder in holders], dtype=np.uintp)
    return Rows(holders, addresses, dimension, dtype, half)


def as_rows(updates: Any) -> Rows:
    """Return a matrix, a sequence of 1-D vectors, or `Rows`, as rows; ValueError where that cannot be done."""
    if isinstance(updates, Rows):
        return updates
    if not isinstance(updates, (list, tuple)):
        matrix = as_array(updates)
        if matrix.ndim != 2:
            raise ValueError(f"updates have shape {matrix.shape}; give an (n, d) matrix or a sequence of n vectors")
        updates = list(matrix)
        if not updates:
            dtype = FLOATS[0] if half_kind(matrix.dtype) else matrix.dtype if matrix.dtype in FLOATS else FLOATS[1]
            return rows_from_vectors([], matrix.shape[1], dtype)
    vectors = [as_array(update) for update in updates]
    if not vectors:
        return rows_from_vectors([], 0, FLOATS[1])
    first = vectors[0]
    for position, vector in enumerate(vectors):
        if vector.ndim != 1 or not (half_kind(vector.dtype) or vector.dtype in FLOATS):
            raise ValueError(
                f"row {position} has shape {vector.shape} and dtype {vector.dtype}; give 1-D float32 or float64 "
                "vectors, or float16 or bfloat16 ones"
            )
        if vector.shape != first.shape or vector.dtype != first.dtype:
            raise ValueError(
                f"row {position} is {vector.dtype} of length {vector.size}, row 0 is {first.dtype} of length "
                f"{first.size}; all rows need one type and one length"
            )
    dtype = FLOATS[0] if half_kind(first.dtype) else first.dtype.newbyteorder("=")
    return rows_from_vectors(vectors, first.size, dtype)
