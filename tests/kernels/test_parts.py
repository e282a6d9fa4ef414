from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fedra.kernels.parts import groups_of, pair_groups


@given(st.integers(0, 20), st.integers(-1, 25))
def test_groups_are_all_positions_in_order(count: int, size: int) -> None:
    groups = groups_of(count, size)
    assert [place for group in groups for place in group] == list(range(count))
    assert all(1 <= len(group) <= max(1, size) for group in groups)


@given(st.integers(2, 12), st.integers(0, 14), st.randoms())
def test_every_pair_is_in_one_group_of_few_rows(count: int, size: int, random: object) -> None:
    first, second = np.triu_indices(count, k=1)
    pairs = np.column_stack([first, second])
    pairs = pairs[[random.random() < 0.6 for _ in pairs]]  # type: ignore[attr-defined]
    seen = []
    for group in pair_groups(pairs, count, size):
        assert len(group.rows) <= max(2, size)
        assert (group.rows[group.pairs] == pairs[group.which]).all()
        seen += np.arange(len(pairs))[group.which].tolist()
    assert sorted(seen) == list(range(len(pairs)))
