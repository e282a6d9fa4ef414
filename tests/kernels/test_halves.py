"""Rows of float16 and bfloat16: the same verdicts, to the bit, as of the same numbers in float32."""

import numpy as np
import pytest
from tests.comparing import assert_same_verdict
from tests.strategies import RULE_NAMES

import fedra
from fedra import kernels
from fedra.kernels import as_rows, largest_magnitudes
from fedra.kernels.halves import BFLOAT16, half_kind, widened

ALL_BITS = np.arange(2**16, dtype=np.uint16)
KINDS = {"float16": np.dtype(np.float16), "bfloat16": BFLOAT16}
every_kind = pytest.mark.parametrize("kind", KINDS)


def halves(kind, values):
    """The values as float16 or bfloat16, cut off where that has fewer digits."""
    if kind == "float16":
        return values.astype(np.float16)
    return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).view(BFLOAT16)


def drawn(kind, count=9, dimension=5000, seed=0):
    return halves(kind, np.random.default_rng(seed).standard_normal((count, dimension)))


@every_kind
def test_every_number_is_widened_exactly(kind):
    stored = ALL_BITS.view(KINDS[kind])
    wide = (ALL_BITS.astype(np.uint32) << 16).view(np.float32) if kind == "bfloat16" else stored.astype(np.float32)
    np.testing.assert_array_equal(widened(stored), wide)
    np.testing.assert_array_equal(as_rows([stored]).part(0, 2**16).holders[0][0], wide)
    finite = np.isfinite(wide)
    part = as_rows([stored[100:60_000]]).part(50, 300).holders[0][0]
    np.testing.assert_array_equal(part.view(np.uint32)[finite[150:400]], wide[150:400].view(np.uint32)[finite[150:400]])


@every_kind
def test_rows_are_not_copied(kind):
    matrix = drawn(kind)
    rows = as_rows(matrix)
    assert rows.addresses.tolist() == [row.ctypes.data for row in matrix]
    assert (rows.half, rows.dtype) == (kind, np.float32)
    screened = fedra.screen(list(matrix), [1] * len(matrix)).cohort.rows
    assert screened.addresses.tolist() == rows.addresses.tolist()
    np.testing.assert_array_equal(np.asarray(rows), widened(matrix))
    np.testing.assert_array_equal(np.stack(list(rows)), widened(matrix))


@every_kind
@pytest.mark.parametrize("dimension", [1, 63, 5000, 17_000])
def test_kernels_give_the_bits_of_float32(kind, dimension):
    matrix = drawn(kind, dimension=dimension)
    wide = widened(matrix)
    weights = np.arange(1.0, 10.0)
    for kernel in (
        kernels.pairwise_l1,
        kernels.pairwise_squared_l2,
        kernels.norms,
        kernels.largest_magnitudes,
        kernels.column_median,
        kernels.column_moments,
        lambda rows: kernels.column_trimmed_mean(rows, 2),
        lambda rows: kernels.column_mean_around_median(rows, 5),
        lambda rows: kernels.column_weighted_median(rows, weights),
        lambda rows: kernels.column_weighted_trimmed_mean(rows, weights, 0.1),
        lambda rows: kernels.weighted_sum(rows, weights),
        lambda rows: kernels.mixed_rows(rows, np.eye(9)[:3] + 0.5),
        lambda rows: kernels.distances_to_mean(rows, weights / 45),
        lambda rows: kernels.distances_to_point(rows, wide[0]),
    ):
        for found, expected in zip(np.atleast_2d(kernel(matrix)), np.atleast_2d(kernel(wide)), strict=True):
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)


@every_kind
def test_tiny_differences_are_taken_again_in_float64(kind):
    tiny = widened(drawn(kind, dimension=6000)) * np.float32(2.0**-12 if kind == "float16" else 1e-30)
    matrix = halves(kind, tiny)
    np.testing.assert_array_equal(kernels.pairwise_squared_l2(matrix), kernels.pairwise_squared_l2(widened(matrix)))


@pytest.mark.parametrize("rule", RULE_NAMES)
@every_kind
def test_every_rule_gives_the_verdict_of_float32(kind, rule):
    matrix = drawn(kind, count=11, dimension=300)
    quantities = np.arange(1, 12) * 7
    found = fedra.make_rule(rule)(list(matrix), quantities)
    expected = fedra.make_rule(rule)(list(widened(matrix)), quantities)
    assert found.update.dtype == np.float32
    assert_same_verdict(found, expected)


@every_kind
def test_what_is_not_finite_is_screened_out(kind):
    wide = widened(drawn(kind, count=5, dimension=70))
    wide[1, 3], wide[2, 69], wide[4, 0] = np.nan, np.inf, -np.inf
    matrix = halves(kind, wide)
    screened = fedra.screen(list(matrix), [1] * 5)
    assert screened.usable.tolist() == [True, False, False, True, False]
    assert screened.reasons == fedra.screen(list(wide), [1] * 5).reasons
    assert np.isfinite(largest_magnitudes(matrix)).tolist() == screened.usable.tolist()


def test_a_cohort_of_several_types_is_that_of_float32():
    wide = np.random.default_rng(0).standard_normal((6, 50)).astype(np.float16).astype(np.float32)
    mixed = [wide[0].astype(np.float16), *wide[1:4], widened(halves("bfloat16", wide[4])), halves("bfloat16", wide[5])]
    verdict = fedra.Median()(mixed, [1] * 6)
    plain = fedra.Median()([widened(row) for row in mixed], [1] * 6)
    assert_same_verdict(verdict, plain)
    doubles = [row.astype(np.float64) for row in wide[:5]]
    verdict = fedra.Median()([*doubles, wide[5].astype(np.float16)], [1] * 6)
    assert verdict.update.dtype == np.float64
    np.testing.assert_array_equal(verdict.update, np.median(wide.astype(np.float64), axis=0))


def test_float16_of_the_other_byte_order():
    wide = np.random.default_rng(0).standard_normal((5, 40)).astype(np.float16)
    swapped = wide.astype(wide.dtype.newbyteorder())
    np.testing.assert_array_equal(kernels.column_median(list(swapped)), kernels.column_median(wide))
    assert_same_verdict(fedra.Median()(list(swapped), [1] * 5), fedra.Median()(list(wide), [1] * 5))


def test_tensors_of_torch_are_read_in_place():
    torch = pytest.importorskip("torch")
    values = torch.randn(5, 40, generator=torch.Generator().manual_seed(0))
    for dtype in (torch.float16, torch.bfloat16):
        tensors = list(values.to(dtype))
        rows = as_rows(tensors)
        assert rows.addresses.tolist() == [tensor.data_ptr() for tensor in tensors]
        np.testing.assert_array_equal(np.asarray(rows), torch.stack(tensors).float().numpy())
        expected = fedra.Median()([tensor.float().numpy() for tensor in tensors], [1] * 5)
        assert_same_verdict(fedra.Median()(tensors, [1] * 5), expected)
        assert_same_verdict(fedra.Median()(values.to(dtype), [1] * 5), expected)
        every_second = values.to(dtype)[:, ::2]
        np.testing.assert_array_equal(np.asarray(as_rows(every_second)), every_second.float().numpy())
    lost = as_rows([tensor.clone() for tensor in values.to(torch.bfloat16)])
    np.testing.assert_array_equal(np.asarray(lost), values.to(torch.bfloat16).float().numpy())


def test_arrays_of_ml_dtypes_are_known_by_name():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = np.random.default_rng(0).standard_normal((5, 40)).astype(ml_dtypes.bfloat16)
    assert half_kind(values.dtype) == "bfloat16"
    np.testing.assert_array_equal(kernels.column_median(values), kernels.column_median(values.astype(np.float32)))


@pytest.mark.parametrize("dtype", [np.int16, np.uint16, "V2", [("half", np.uint16)], np.int8, bool])
def test_sixteen_bits_of_another_kind_are_no_updates(dtype):
    rows = np.zeros((4, 3), dtype=dtype)
    assert half_kind(rows.dtype) == ""
    assert "instead of float32 or float64" in fedra.screen(list(rows), [1] * 4).reasons[0]
    with pytest.raises(ValueError, match="give 1-D float32 or float64"):
        as_rows(rows)
