"""A rule's passes over files: what was done before is not done again, and each row is screened while it is read."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from fedra.kernels.threads import over_blocks
from fedra.server.faults import Unusable
from fedra.updates.looking import Looking
from fedra.updates.readers import Reader
from fedra.updates.store import Store

T = TypeVar("T")
Array = npt.NDArray[Any]
# Called with the number of the pass, how many values it has read, and of how many.
Progress = Callable[[int, int, int], None]


@dataclass(frozen=True, eq=False)
class Block:
    """What a block of a pass gave: its value, and the largest magnitudes that were seen, by client."""

    value: Array | None
    largest: dict[int, int]


class Memory(Protocol):
    """Remembers what blocks gave, beyond the end of the process."""

    def begin(self, attempt: str) -> None:
        """Get ready for an attempt: what another one gave is of no use to it."""
        ...

    def forget_after(self, number: int) -> None:
        """Forget what later passes gave: what they wrote is not there."""
        ...

    def find(self, number: int, start: int, stop: int) -> Block | None:
        """Return what a block of a pass gave, where it is known."""
        ...

    def add(self, number: int, start: int, stop: int, value: Array | None, largest: dict[int, int]) -> None:
        """Remember what a block gave."""
        ...


class Elsewhere(Protocol):
    """Does blocks of passes in other processes, maybe on other machines."""

    def over(
        self, work: Callable[[int, int], Any], blocks: Sequence[tuple[int, int]], passes: Passes, places: Sequence[int]
    ) -> Generator[Block, None, None]:
        """Yield what each block gave, in the blocks' order; what it wrote to vectors is there by then.

        Where somebody's files cannot be read it tells `passes`, and lets that raise `Rejected`.
        """
        ...


class Passes:
    """The passes of one attempt after the other; an attempt ends with a verdict, or because clients are rejected."""

    def __init__(
        self,
        *,
        dimension: int,
        dtype: np.dtype[Any],
        store: Store,
        memory: Memory | None = None,
        progress: Progress | None = None,
        elsewhere: Elsewhere | None = None,
        complete: Iterable[int] = (),
    ) -> None:
        self.dimension, self.dtype = dimension, dtype
        self.store = store
        self.looking = Looking(dimension, dtype, complete)
        self._memory, self._progress, self._elsewhere = memory, progress, elsewhere
        # Not held here: a vector in memory goes when nobody needs it any more.
        self._made: WeakValueDictionary[str, Array] = WeakValueDictionary()
        self._attempt, self._number, self._vectors = "", 0, 0
        self._read = 0
        self._lock = threading.Lock()

    def begin(self, places: Sequence[int]) -> None:
        """Begin an attempt with these clients."""
        attempt = hashlib.sha256(repr(list(places)).encode()).hexdigest()[:16]
        if self._attempt and attempt != self._attempt:
            self.store.clear()
        self._attempt, self._number, self._vectors = attempt, 0, 0
        if self._memory is not None:
            self._memory.begin(attempt)

    def new_vector(self) -> Array:
        """Return a vector for results; the same one where an earlier process was as far."""
        self._vectors += 1
        name = f"vector-{self._attempt}-{self._vectors}"
        vector, kept = self.store.new(name, self.dimension, self.dtype)
        if not kept and self._memory is not None:
            self._memory.forget_after(self._number)
        self._made[name] = vector
        return vector

    def is_result(self, vector: Any) -> bool:
        """Tell whether this is one of the vectors that results are written to."""
        return any(vector is made for made in self._made.values())

    def over(
        self, work: Callable[[int, int], T], blocks: list[tuple[int, int]], threads: int | None, *, places: list[int]
    ) -> Iterator[T]:
        """Yield `work(start, stop)` for each block, then look whether somebody has to be rejected."""
        self._number += 1
        number = self._number
        self._read = 0

        def done(start: int, stop: int) -> T:
            value = self._one_block(work, number, start, stop, places)
            self._tell(number, start, stop)
            return value

        if self._elsewhere is None:
            yield from over_blocks(done, blocks, threads)
        else:
            yield from self._over_elsewhere(self._elsewhere, work, blocks, places)
        self.check()

    def _tell(self, number: int, start: int, stop: int) -> None:
        with self._lock:
            self._read += stop - start
            if self._progress is not None:
                self._progress(number, self._read, self.dimension)

    def _over_elsewhere(
        self, elsewhere: Elsewhere, work: Callable[[int, int], T], blocks: list[tuple[int, int]], places: list[int]
    ) -> Iterator[T]:
        number = self._number
        known = set() if self._memory is None else {one for one in blocks if self._memory.find(number, *one)}
        with closing(elsewhere.over(work, [one for one in blocks if one not in known], self, places)) as made:
            for start, stop in blocks:
                found = None if self._memory is None else self._memory.find(number, start, stop)
                if found is None:
                    found = next(made)
                    if self._memory is not None:
                        self._memory.add(number, start, stop, found.value, found.largest)
                self.looking.note(found.largest, start, stop)
                self._tell(number, start, stop)
                yield found.value  # type: ignore[misc]

    def _one_block(self, work: Callable[[int, int], T], number: int, start: int, stop: int, places: list[int]) -> T:
        if self._memory is not None and (found := self._memory.find(number, start, stop)) is not None:
            self.looking.note(found.largest, start, stop)
            return found.value  # type: ignore[return-value]
        value = work(start, stop)
        # Where a row could not be read there are zeros in its place, which must not be taken for its values later.
        if self._memory is not None and not self.looking.faulty:
            self._memory.add(number, start, stop, value, self.looking.seen(places, start, stop))  # type: ignore[arg-type]
        return value

    def base_part(self, base: Reader, first: int, last: int) -> Array:
        """Return columns of the model that all began with, which is the caller's: what is wrong with it raises."""
        sent = np.empty(last - first, dtype=self.dtype)
        try:
            base.read(first, last, sent)
        except Unusable as fault:
            raise OSError(f"base: {fault}; put it back and start again") from fault
        return sent

    def reject(self, place: int | None, fault: str) -> None:
        """Remember that a row could not be read."""
        if place is not None:
            self.looking.reject(place, fault)

    def look(self, readers: Sequence[Reader], first: int, last: int, buffer: Array) -> None:
        """Look at what was read."""
        self.looking.look([reader.place for reader in readers], first, last, buffer)

    def check(self) -> None:
        """Raise `Rejected` where clients turned out to be unusable."""
        self.looking.check()
