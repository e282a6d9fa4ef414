from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedra.updates.looking import Covered, Looking, Rejected


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 10)), max_size=12), st.integers(0, 35), st.integers(1, 8))
def test_ranges_are_covered_when_each_column_is(added: list[tuple[int, int]], first: int, width: int) -> None:
    covered, columns = Covered(), set()
    for start, length in added:
        covered.add(start, start + length)
        columns |= set(range(start, start + length))
    assert covered.has(first, first + width) == columns.issuperset(range(first, first + width))


def test_a_row_is_judged_when_all_of_it_has_been_seen() -> None:
    looking = Looking(10, np.dtype(np.float32))
    rows = np.ones((2, 10), dtype=np.float32)
    rows[1, 2] = np.nan
    looking.look([0, 1], 0, 6, rows[:, :6])
    looking.check()
    assert looking.unseen([0, 1]) == [0, 1]
    looking.look([0, 1], 6, 10, rows[:, 6:])
    with pytest.raises(Rejected) as found:
        looking.check()
    assert found.value.reasons == {1: "update holds values that are not finite"}
    assert looking.unseen([0]) == []
    looking.check()


def test_what_cannot_be_read_is_rejected_at_once_and_first_reasons_stay() -> None:
    looking = Looking(10, np.dtype(np.float64))
    looking.reject(3, "gone")
    looking.reject(3, "gone again")
    assert looking.faulty
    with pytest.raises(Rejected) as found:
        looking.check()
    assert found.value.reasons == {3: "gone"}
    assert not looking.faulty


def test_a_row_of_nobody_is_not_looked_at() -> None:
    looking = Looking(2, np.dtype(np.float32))
    looking.look([None], 0, 2, np.full((1, 2), np.inf, dtype=np.float32))
    looking.check()
    assert looking.seen([0], 0, 2) == {}
