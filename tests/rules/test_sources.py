"""Every way of handing over the same updates gives the same verdict, to the last bit."""

import numpy as np
import pytest
from tests.comparing import assert_same_verdict
from tests.strategies import RULE_NAMES, make_round

import fedra


class OnlyDLPack:
    """A vector that offers DLPack and nothing else."""

    def __init__(self, vector):
        self._vector = vector

    def __dlpack__(self, **options):
        return self._vector.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._vector.__dlpack_device__()


class OnlyArray:
    """A vector that offers `__array__` and nothing else."""

    def __init__(self, vector):
        self._vector = vector

    def __array__(self, dtype=None, copy=None):
        return self._vector


def torch_rows(matrix, folder):
    torch = pytest.importorskip("torch")
    return [torch.from_numpy(row.copy()) for row in matrix]


def torch_matrix(matrix, folder):
    torch = pytest.importorskip("torch")
    return torch.from_numpy(matrix.copy())


def mapped_rows(matrix, folder):
    rows = []
    for i, row in enumerate(matrix):
        row.tofile(folder / f"{i}.bin")
        rows.append(np.memmap(folder / f"{i}.bin", dtype=matrix.dtype, mode="r"))
    return rows


def mapped_matrix(matrix, folder):
    np.save(folder / "all.npy", matrix)
    return np.load(folder / "all.npy", mmap_mode="r")


def strided_rows(matrix, folder):
    wide = np.zeros((len(matrix), 2 * matrix.shape[1]), dtype=matrix.dtype)
    wide[:, ::2] = matrix
    return [row[::2] for row in wide]


def reversed_rows(matrix, folder):
    backwards = matrix[:, ::-1].copy()
    return [row[::-1] for row in backwards]


def unaligned_rows(matrix, folder):
    rows = []
    for row in matrix:
        buffer = bytearray(1) + bytearray(row.tobytes())
        rows.append(np.frombuffer(buffer, dtype=np.uint8)[1:].view(matrix.dtype))
    return rows


def read_only(matrix, folder):
    frozen = matrix.copy()
    frozen.flags.writeable = False
    return frozen


SOURCES = {
    "list": lambda matrix, folder: list(matrix),
    "tuple": lambda matrix, folder: tuple(row.copy() for row in matrix),
    "fortran": lambda matrix, folder: np.asfortranarray(matrix),
    "big-endian": lambda matrix, folder: list(matrix.astype(matrix.dtype.newbyteorder(">"))),
    "array-protocol": lambda matrix, folder: [OnlyArray(row) for row in matrix],
    "dlpack": lambda matrix, folder: [OnlyDLPack(row.copy()) for row in matrix],
    "memmap-rows": mapped_rows,
    "memmap-matrix": mapped_matrix,
    "strided": strided_rows,
    "reversed": reversed_rows,
    "unaligned": unaligned_rows,
    "read-only": read_only,
    "torch-rows": torch_rows,
    "torch-matrix": torch_matrix,
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("source", SOURCES)
def test_the_source_does_not_matter(source, dtype, tmp_path):
    cohort = make_round(5, 15, 137, dtype, liars=1)
    updates = SOURCES[source](cohort.updates, tmp_path)
    before = cohort.updates.copy()
    for name in RULE_NAMES:
        rule = fedra.make_rule(name)
        expected = rule(cohort.updates, cohort.quantities)
        assert expected.update.dtype == dtype
        assert_same_verdict(rule(updates, cohort.quantities), expected)
    np.testing.assert_array_equal(cohort.updates, before)


@pytest.mark.parametrize(
    "quantities",
    [
        lambda q: q.tolist(),
        lambda q: [int(value) for value in q],
        lambda q: q.astype(np.int64),
        lambda q: q.astype(object),
        lambda q: tuple(np.float64(value) for value in q),
    ],
    ids=["floats", "ints", "int64", "objects", "scalars"],
)
def test_the_type_of_the_quantities_does_not_matter(quantities):
    cohort = make_round(6, 12, 10)
    expected = fedra.FedRA()(cohort.updates, cohort.quantities)
    assert_same_verdict(fedra.FedRA()(cohort.updates, quantities(cohort.quantities)), expected)


def test_plain_lists_of_floats_are_updates_too():
    assert fedra.Median()([[1.0, 2.0], [3.0, 4.0], [5.0, 9.0]], [1, 1, 1]).update.tolist() == [3.0, 4.0]


def test_a_minority_of_the_other_float_type_is_converted():
    cohort = make_round(8, 12, 30, np.float32)
    rows = [row.astype(np.float64) if i in (0, 5) else row for i, row in enumerate(cohort.updates)]
    verdict = fedra.FedRA()(rows, cohort.quantities)
    assert verdict.update.dtype == np.float32
    assert_same_verdict(verdict, fedra.FedRA()(cohort.updates, cohort.quantities))
