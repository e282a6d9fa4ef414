"""Rows in pieces give every rule the bits that whole vectors give, however they are cut."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies import make_round
from tests.updates.test_rules_on_files import RULE_NAMES, assert_same

import fedra
from fedra.kernels import column_moments, distances_compiled, parted
from fedra.kernels.parted import PartedRows
from fedra.screening import screen


@settings(max_examples=80, deadline=None)
@given(
    name=st.sampled_from(RULE_NAMES),
    before=st.sampled_from([None, None, "nnm", "bucketing size=2", "arc"]),
    seed=st.integers(0, 2**32 - 1),
    number=st.integers(7, 13),
    dimension=st.sampled_from([0, 1, 3, 700, 4096, 5000, 33_000]),
    dtype=st.sampled_from([np.float32, np.float64]),
    group=st.sampled_from([1, 300_000, 16 << 20]),
    panel=st.sampled_from([6, 144]),
    threads=st.sampled_from([1, 2]),
    data=st.data(),
)
def test_the_partition_of_columns_makes_no_difference(
    name: str,
    before: str | None,
    seed: int,
    number: int,
    dimension: int,
    dtype: Any,
    group: int,
    panel: int,
    threads: int,
    data: Any,
) -> None:
    round_ = make_round(seed, number, dimension, dtype, base=1.0, liars=1)
    if dimension:
        # Equal rows, and rows far away, take the way through float64.
        round_.updates[1] = round_.updates[0]
        round_.updates[2] *= 1e25
    edges = sorted(data.draw(st.lists(st.integers(0, dimension), max_size=8)))
    rows = PartedRows([[part.copy() for part in np.split(row, edges)] for row in round_.updates], np.dtype(dtype))
    rule = fedra.make_rule(name, before=before)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parted, "_GROUP_BYTES", group)
        patch.setattr(distances_compiled, "PANEL", panel)
        found = rule.judge(screen(rows, round_.quantities, range(number), threads=threads))
        assert_same(found, rule.judge(screen(round_.updates, round_.quantities, range(number))))


def test_faulty_rows_are_left_out_in_place() -> None:
    round_ = make_round(1, 8, 5000, np.float32, base=1.0)
    round_.updates[3, 17] = np.nan
    rows = PartedRows([np.split(row, [10, 10, 4000]) for row in round_.updates], np.dtype(np.float32))
    claims = [100, 100, -1, 100, 100, 100, 100, 100]
    screened = screen(rows, claims)
    assert screened.usable.tolist() == [True, True, False, False, True, True, True, True]
    assert isinstance(screened.cohort.rows, PartedRows)
    assert screened.cohort.rows.pieces[0][0] is rows.pieces[0][0]
    assert_same(fedra.FedRA().judge(screened), fedra.FedRA().judge(screen(round_.updates, claims)))


def test_vectors_matrices_and_moments_are_there_for_who_wants_them() -> None:
    matrix = np.random.default_rng(0).standard_normal((5, 40_000))
    rows = PartedRows([np.split(row, [7, 20_000]) for row in matrix], matrix.dtype)
    assert (np.asarray(rows) == matrix).all()
    assert all((one == other).all() for one, other in zip(rows, matrix, strict=True))
    for one, other in zip(column_moments(rows), column_moments(matrix), strict=True):
        assert one.tobytes() == other.tobytes()
    with pytest.raises(ValueError, match="in pieces"):
        _ = rows.addresses


@pytest.mark.parametrize(
    "pieces",
    [
        [[np.zeros(3)], [np.zeros(4)]],
        [[np.zeros(3)], [np.zeros(3, np.float32)]],
        [[np.zeros(6)[::2]], [np.zeros(3)]],
        [[np.zeros((1, 3))], [np.zeros(3)]],
    ],
)
def test_pieces_that_do_not_fit_are_refused(pieces: Any) -> None:
    with pytest.raises(ValueError, match="contiguous arrays of float64, of the same lengths"):
        PartedRows(pieces, np.dtype(np.float64))
