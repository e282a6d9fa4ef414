"""Reading rows where they lie."""

import tracemalloc

import numpy as np
import pytest

import fedra
from fedra.kernels import as_rows, column_median


def addresses(arrays):
    return [array.ctypes.data for array in arrays]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_not_copied(dtype, tmp_path):
    matrix = np.random.default_rng(0).standard_normal((4, 10)).astype(dtype)
    np.save(tmp_path / "rows.npy", matrix)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    for rows in (matrix, mapped, matrix[:, 2:7]):
        assert as_rows(rows).addresses.tolist() == addresses(list(rows))
        assert as_rows(list(rows)).addresses.tolist() == addresses(list(rows))
    assert as_rows(as_rows(matrix)).addresses.tolist() == addresses(list(matrix))


def test_screening_does_not_copy_either():
    matrix = np.random.default_rng(0).standard_normal((6, 10))
    matrix[2, 3] = np.nan
    cohort = fedra.screen(list(matrix), [1] * 6).cohort
    assert cohort.rows.addresses.tolist() == addresses([matrix[i] for i in (0, 1, 3, 4, 5)])


def test_torch_tensors_are_read_in_place():
    torch = pytest.importorskip("torch")
    tensors = [torch.arange(5, dtype=torch.float32) + i for i in range(3)]
    assert as_rows(tensors).addresses.tolist() == [tensor.data_ptr() for tensor in tensors]


def test_rows_that_cannot_be_read_in_place_are_copied_one_by_one():
    matrix = np.asfortranarray(np.random.default_rng(0).standard_normal((4, 10)))
    rows = as_rows(matrix)
    assert not set(rows.addresses.tolist()) & set(addresses(list(matrix)))
    np.testing.assert_array_equal(np.stack(rows.holders), matrix)


def test_rows_stay_alive_with_their_holder():
    rows = as_rows([np.full(1000, float(i)) for i in range(3)])
    assert column_median(rows).tolist() == [1.0] * 1000


def peak_of(work):
    work()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_fedra_on_a_list_of_rows_takes_a_tenth_of_their_memory_at_most():
    rng = np.random.default_rng(0)
    rows = [rng.standard_normal(1_000_000, dtype=np.float32) for _ in range(20)]
    rule = fedra.FedRA()
    assert peak_of(lambda: rule(rows, range(1, 21), threads=1)) < 0.1 * sum(row.nbytes for row in rows)


def test_the_median_of_mapped_rows_takes_little_beside_its_result(tmp_path):
    rng = np.random.default_rng(0)
    rows = []
    for i in range(20):
        rng.standard_normal(200_000, dtype=np.float32).tofile(tmp_path / f"{i}.bin")
        rows.append(np.memmap(tmp_path / f"{i}.bin", dtype=np.float32, mode="r"))
    result = rows[0].nbytes
    assert peak_of(lambda: column_median(rows, threads=1)) < 1.5 * result


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.zeros(3), r"shape \(3,\); give an \(n, d\) matrix"),
        ([np.zeros(3), np.zeros(4)], "row 1 is float64 of length 4, row 0 is float64 of length 3"),
        ([np.zeros(3), np.zeros(3, dtype=np.float32)], "row 1 is float32"),
        (np.zeros((2, 3), dtype=int), "row 0 has shape .* and dtype int64; give 1-D float32 or float64"),
        ([np.zeros((2, 2))], r"row 0 has shape \(2, 2\)"),
        ([None], "dtype object"),
    ],
)
def test_what_are_no_rows_is_named(rows, message):
    with pytest.raises(ValueError, match=message):
        as_rows(rows)


def test_rows_give_their_vectors_and_a_matrix_of_them():
    vectors = [np.arange(4.0) + i for i in range(3)]
    rows = as_rows(vectors).take(np.array([2, 0]))
    assert all(np.shares_memory(row, source) for row, source in zip(rows, (vectors[2], vectors[0]), strict=True))
    np.testing.assert_array_equal(np.asarray(rows), [vectors[2], vectors[0]])
    assert np.asarray(rows, dtype=np.float32).dtype == np.float32
    with pytest.raises(ValueError, match="is a copy"):
        np.array(rows, copy=False)
