"""A few threads over ranges of columns, with results that do not depend on how many."""

from __future__ import annotations

import numbers
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice, pairwise
from typing import TypeVar

from fedra.checks import wrong

S = TypeVar("S")
T = TypeVar("T")

_MOST_BLOCKS = 64
_LEAST_COLUMNS = 16_384


def thread_count(threads: int | None) -> int:
    """Return how many threads to use: as asked, or one for each core this process may run on."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if isinstance(threads, bool) or not isinstance(threads, numbers.Integral) or threads < 1:
        raise ValueError(wrong("threads", threads, "a whole number of at least 1, or None for one per core"))
    return int(threads)


def column_blocks(dimension: int, multiple: int) -> list[tuple[int, int]]:
    """Cut the columns into ranges that depend on the dimension alone, so that sums over them always round alike."""
    columns = max(_LEAST_COLUMNS, -(-dimension // _MOST_BLOCKS))
    columns = -(-columns // multiple) * multiple
    edges = [*range(0, dimension, columns), dimension]
    return list(pairwise(edges))


def over_blocks(work: Callable[[int, int], T], blocks: list[tuple[int, int]], threads: int | None) -> Iterator[T]:
    """Yield `work(start, stop)` for each block, in the blocks' order, `threads` of them at a time."""
    return in_order(lambda block: work(*block), blocks, threads)


def in_order(work: Callable[[S], T], items: Sequence[S], threads: int | None) -> Iterator[T]:
    """Yield `work(item)` for each item, in the items' order, `threads` of them at a time.

    Few results wait to be taken, however many items there are: each may be as large as a matrix of distances.
    """
    workers = min(thread_count(threads), len(items))
    if workers <= 1:
        for item in items:
            yield work(item)
        return
    left = iter(items)
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[Future[T]] = deque(pool.submit(work, item) for item in islice(left, 2 * workers))
        while waiting:
            result = waiting.popleft().result()
            waiting.extend(pool.submit(work, item) for item in islice(left, 1))
            yield result
