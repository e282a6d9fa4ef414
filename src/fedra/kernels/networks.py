"""Sorting networks: which rows to compare so that every column ends up sorted.

A network does the same comparisons whatever the data, so one comparison is a vector minimum and a vector maximum over a
whole tile of columns. Batcher's odd-even merge sort gives the pairs; those that no wanted rank depends on are left out.
Loading and storing rows would take longer than comparing them, so comparisons are gathered into steps that keep a few
rows in registers: up to eight rows sorted at once to begin with, then pieces of two layers of the merge together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

Pair = tuple[int, int]
Layer = npt.NDArray[np.intp]


def _passes(count: int, first: int, last: int) -> list[Layer]:
    """Return the comparisons of Batcher's merge exchange for any count, in layers (Knuth, TAOCP 5.2.2, algorithm M).

    Only its passes p from `first` down to `last`, powers of two: afterwards values `last` rows apart are in order.
    """
    top = 1 << max(count - 1, 1).bit_length() - 1
    layers = []
    p = min(first, top)
    while p >= last:
        q, r, distance = top, 0, p
        while True:
            low = np.arange(max(count - distance, 0), dtype=np.intp)
            low = low[low & p == r]
            layers.append(np.column_stack([low, low + distance]))
            if q == p:
                break
            distance, q, r = q - p, q >> 1, p
        p >>= 1
    return layers


MOST_ROWS = 8
# Whole networks for two to eight rows.
_SORTERS: dict[int, tuple[Pair, ...]] = {
    count: tuple((int(low), int(high)) for layer in _passes(count, 4, 1) for low, high in layer)
    for count in range(2, MOST_ROWS + 1)
}
# What two layers of a merge look like between five rows at most; anything else is done pair by pair.
_PIECES: tuple[tuple[Pair, ...], ...] = (
    ((1, 0), (3, 2), (1, 2), (3, 4)),
    ((0, 1), (2, 3), (2, 1), (4, 3)),
    ((0, 1), (3, 2), (1, 2), (0, 3)),
    ((1, 0), (3, 2), (2, 1)),
    ((1, 2), (1, 0), (3, 2)),
    ((1, 0), (3, 2), (1, 2)),
    ((0, 1), (3, 2), (2, 1)),
    ((1, 0), (2, 3), (2, 1)),
    ((0, 1), (1, 2)),
    ((1, 0), (1, 2)),
    ((0, 1), (2, 1)),
)
# Every kind of step: which of its rows are compared, (low, high), in this order.
PATTERNS: tuple[tuple[Pair, ...], ...] = (*_SORTERS.values(), *_PIECES)
_PIECE_ROWS = 5
_KIND = {pattern: kind for kind, pattern in enumerate(PATTERNS)}
# Beyond this a tile does not stay in the first-level cache, and finding pieces takes longer than they save.
_MOST_GATHERED = 256


def sorting_network(count: int, ranks: Iterable[int]) -> npt.NDArray[np.intp]:
    """Return the (steps, 9) steps that bring each wanted rank into its row; other rows end in any order.

    A step is a kind, the position of its pattern in `PATTERNS`, and the rows that it compares; -1 fills up.
    """
    return _network(count, tuple(sorted(set(ranks))))


def comparisons(steps: npt.NDArray[np.intp]) -> int:
    """Return how many pairs of rows the steps compare."""
    return sum(len(PATTERNS[kind]) for kind in steps[:, 0])


@lru_cache(maxsize=128)
def _network(count: int, ranks: tuple[int, ...]) -> npt.NDArray[np.intp]:
    top = 1 << max(count - 1, 1).bit_length() - 1
    stride = max(top // 4, 1)
    wanted = np.zeros(count, dtype=bool)
    wanted[list(ranks)] = True
    merging = _needed(_passes(count, stride // 2, 1), wanted)
    sorting = _needed(_passes(count, top, stride), wanted)
    steps = _sorter_steps(count, stride, sorting)
    if count <= _MOST_GATHERED:
        for first in range(0, len(merging), 2):
            steps.append(_steps(_gathered(merging[first], merging[first + 1] if first + 1 < len(merging) else ())))
    else:
        steps.extend(_pair_steps(layer) for layer in merging)
    network = np.concatenate([np.empty((0, 1 + MOST_ROWS), dtype=np.intp), *steps])
    network.flags.writeable = False
    return network


def _needed(layers: list[Layer], wanted: npt.NDArray[np.bool_]) -> list[Layer]:
    """Return the layers without comparisons that no wanted row depends on; `wanted` then is what they depend on."""
    kept = []
    for layer in reversed(layers):
        needed = layer[wanted[layer].any(axis=1)]
        wanted[needed] = True
        if len(needed):
            kept.append(needed)
    return kept[::-1]


def _sorter_steps(count: int, stride: int, layers: list[Layer]) -> list[npt.NDArray[np.intp]]:
    """Return the steps that put values `stride` rows apart in order: each eight at once, where all of it is needed."""
    pairs = np.concatenate([np.empty((0, 2), dtype=np.intp), *layers])
    steps = []
    for i in range(stride):
        rows = range(i, count, stride)
        own = pairs[pairs[:, 0] % stride == i]
        whole = len(rows) > 1 and len(own) == len(_SORTERS[len(rows)])
        steps.append(_steps([(_SORTERS[len(rows)], rows)]) if whole else _pair_steps(own))
    return steps


def _pair_steps(layer: Layer) -> npt.NDArray[np.intp]:
    steps = np.full((len(layer), 1 + MOST_ROWS), -1, dtype=np.intp)
    steps[:, 0] = _KIND[_SORTERS[2]]
    steps[:, 1:3] = layer
    return steps


def _steps(pieces: Iterable[tuple[tuple[Pair, ...], Iterable[int]]]) -> npt.NDArray[np.intp]:
    lines = [[_KIND[pattern], *rows] for pattern, rows in pieces]
    steps = np.full((len(lines), 1 + MOST_ROWS), -1, dtype=np.intp)
    for step, line in zip(steps, lines, strict=True):
        step[: len(line)] = line
    return steps


def _gathered(first: Iterable[Pair], second: Iterable[Pair]) -> Iterator[tuple[tuple[Pair, ...], list[int]]]:
    """Yield two layers as patterns and rows.

    No row is in more than one pair of a layer, so the pairs of both are paths and rings, which alternate between the
    layers. A path may be cut at a row whose pair of the first layer is behind the cut, and that of the second before.
    """
    for rows, pairs in _paths([_partners(first), _partners(second)]):
        start = 0
        while start < len(pairs):
            stop = min(start + _PIECE_ROWS - 1, len(pairs))
            while stop < len(pairs) and pairs[stop - 1][0] == 1:
                stop -= 1
            yield from _piece(rows[start : stop + 1], pairs[start:stop])
            start = stop


def _partners(layer: Iterable[Pair]) -> dict[int, tuple[int, bool]]:
    """Return each row's partner in a layer, and whether the row is the low one."""
    partners = {}
    for low, high in layer:
        partners[int(low)] = (int(high), True)
        partners[int(high)] = (int(low), False)
    return partners


def _paths(layers: list[dict[int, tuple[int, bool]]]) -> Iterator[tuple[list[int], list[tuple[int, bool]]]]:
    """Yield rows along each path, and for each pair along it its layer and whether the row before is the low one."""
    rows = sorted(set(layers[0]) | set(layers[1]))
    seen: set[int] = set()
    # Ends of paths first; what is left over then are rings.
    for row in (*(row for row in rows if (row in layers[0]) != (row in layers[1])), *rows):
        if row in seen:
            continue
        layer = 0 if row in layers[0] else 1
        along, pairs = [row], []
        seen.add(row)
        while row in layers[layer]:
            row, low = layers[layer][row]
            pairs.append((layer, low))
            along.append(row)
            if row in seen:
                break
            seen.add(row)
            layer = 1 - layer
        yield along, pairs


def _piece(rows: list[int], pairs: list[tuple[int, bool]]) -> Iterator[tuple[tuple[Pair, ...], list[int]]]:
    """Yield a path of few rows as one pattern, read in either direction, or else pair by pair."""
    ring = rows[0] == rows[-1]
    ends = [(a, b) if low else (b, a) for (a, b), (_, low) in zip(pairwise(rows), pairs, strict=True)]
    rows = rows[:-1] if ring else rows
    for order in (rows, rows[:1] + rows[:0:-1] if ring else rows[::-1]):
        place = {row: i for i, row in enumerate(order)}
        first, second = (
            {(place[a], place[b]) for (a, b), (layer, _) in zip(ends, pairs, strict=True) if layer == wanted}
            for wanted in (0, 1)
        )
        for pattern in _KIND:
            if set(pattern[: len(first)]) == first and set(pattern[len(first) :]) == second:
                yield pattern, order
                return
    for wanted in (0, 1):
        for pair, (layer, _) in zip(ends, pairs, strict=True):
            if layer == wanted:
                yield _SORTERS[2], list(pair)
