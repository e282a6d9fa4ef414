"""Screening while reading: the largest magnitude of each row, known when all of its columns have been seen."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fedra.screening import magnitude_fault


class Rejected(Exception):
    """Clients whose updates turned out to be unusable while they were read, with the reasons."""

    def __init__(self, reasons: Mapping[int, str]) -> None:
        super().__init__("; ".join(reasons.values()))
        self.reasons = dict(reasons)


class Covered:
    """Which columns have been seen, as ranges that do not touch."""

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int]] = []

    def add(self, first: int, last: int) -> None:
        """Add columns first..last."""
        place = bisect_left(self._ranges, (first, first))
        while place > 0 and self._ranges[place - 1][1] >= first:
            place -= 1
        end = place
        while end < len(self._ranges) and self._ranges[end][0] <= last:
            first, last = min(first, self._ranges[end][0]), max(last, self._ranges[end][1])
            end += 1
        self._ranges[place:end] = [(first, last)]

    def has(self, first: int, last: int) -> bool:
        """Whether all of columns first..last have been seen."""
        return any(start <= first and last <= stop for start, stop in self._ranges)


class Looking:
    """What is known of the rows of a round so far; several threads may look at once.

    Clients in `complete` have been seen elsewhere, and are not looked at.
    """

    def __init__(self, dimension: int, dtype: np.dtype[Any], complete: Iterable[int] = ()) -> None:
        self._dimension, self._dtype = dimension, dtype
        self._bits: Any = np.uint32 if dtype == np.float32 else np.uint64
        self._covered: dict[int, Covered] = {}
        self._largest: dict[int, int] = {}
        self._complete = set(complete)
        self._faults: dict[int, str] = {}
        self._lock = threading.Lock()

    @property
    def complete(self) -> frozenset[int]:
        """The clients of whom all columns have been seen."""
        with self._lock:
            return frozenset(self._complete)

    @property
    def faults(self) -> dict[int, str]:
        """Why clients' files could not be read."""
        with self._lock:
            return dict(self._faults)

    @property
    def faulty(self) -> bool:
        """Whether somebody's files could not be read."""
        return bool(self._faults)

    def look(self, places: Sequence[int | None], first: int, last: int, buffer: npt.NDArray[Any]) -> None:
        """Look at columns first..last of these clients' rows."""
        new = [(row, place) for row, place in enumerate(places) if place is not None and place not in self._complete]
        if not new or first == last:
            return
        from fedra.kernels import sums_compiled as compiled

        rows = np.array([row for row, _ in new], dtype=np.uintp)
        addresses = np.uintp(buffer.ctypes.data) + rows * np.uintp(buffer.strides[0])
        largest = np.zeros(len(new), dtype=self._bits)
        compiled.largest_bits(addresses, 0, last - first, self._bits(np.iinfo(self._bits).max >> 1), largest)
        self.note(dict(zip((place for _, place in new), largest.tolist(), strict=True)), first, last)

    def note(self, largest: Mapping[int, int], first: int, last: int) -> None:
        """Take in what was seen of these clients' columns first..last."""
        with self._lock:
            for place, bits in largest.items():
                self._largest[place] = max(self._largest.get(place, 0), bits)
                covered = self._covered.setdefault(place, Covered())
                covered.add(first, last)
                if covered.has(0, self._dimension):
                    self._complete.add(place)

    def seen(self, places: Iterable[int], first: int, last: int) -> dict[int, int]:
        """Return of these clients those whose columns first..last have been seen, with their largest so far."""
        with self._lock:
            return {
                place: self._largest[place]
                for place in places
                if place in self._covered and self._covered[place].has(first, last)
            }

    def reject(self, place: int, fault: str) -> None:
        """Remember that a client's files could not be read."""
        with self._lock:
            self._faults.setdefault(place, fault)

    def unseen(self, places: Iterable[int]) -> list[int]:
        """Return the clients of whom not all columns have been seen."""
        return [place for place in places if place not in self._complete]

    def check(self) -> None:
        """Raise `Rejected` where somebody of whom all is known is unusable."""
        with self._lock:
            found = dict(self._faults)
            for place in self._complete - found.keys():
                magnitude = np.array(self._largest[place], dtype=self._bits).view(self._dtype)
                if fault := magnitude_fault(float(magnitude)):
                    found[place] = fault
            # Nobody is rejected twice: the next attempt is without them.
            self._faults = {}
            self._complete -= found.keys()
            for place in found:
                self._covered.pop(place, None)
        if found:
            raise Rejected(found)
