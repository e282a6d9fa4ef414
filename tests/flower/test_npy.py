from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fedra.flower.npy import canonical_npy, flat_model, is_canonical, npy_model_form, view_npy
from fedra.server.faults import Unusable
from fedra.server.npy import make_header, read_header

arrays = hnp.arrays(
    dtype=st.sampled_from(["f2", "f4", "f8", ">f4", "i8", "u1", "?"]),
    shape=hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
).flatmap(lambda array: st.sampled_from([array, np.asfortranarray(array)]))


def saved(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def entry_of(array: np.ndarray):
    return npy_model_form({"w": saved(array)}).entries[0]


@given(arrays)
def test_what_numpy_saved_is_read_as_numpy_loads_it(array):
    data = saved(array)
    header = read_header(data)
    assert (header.shape, header.dtype) == (array.shape, array.dtype)
    flat = view_npy(data, entry_of(array))
    assert flat.dtype.newbyteorder("=") == array.dtype.newbyteorder("=")
    np.testing.assert_array_equal(flat.reshape(array.shape), np.load(io.BytesIO(data)))


@given(arrays)
def test_the_servers_form_is_what_numpy_would_save(array):
    entry, native = (
        entry_of(array),
        np.ascontiguousarray(array).astype(array.dtype.newbyteorder("=")).reshape(array.shape),
    )
    flat = view_npy(saved(array), entry)
    data = canonical_npy(entry, flat)
    assert data == saved(native)
    assert is_canonical(entry, data, view_npy(data, entry))
    assert is_canonical(entry, saved(array), flat) == (saved(array) == data)


@given(arrays, st.integers(0, 200), st.binary(min_size=1, max_size=8))
def test_bytes_that_were_changed_are_read_or_refused(array, place, change):
    data = saved(array)
    data = data[:place] + change + data[place + len(change) :]
    try:
        flat = view_npy(data, entry_of(array))
    except Unusable:
        return
    np.testing.assert_array_equal(flat.reshape(array.shape), np.load(io.BytesIO(data), allow_pickle=False))


def test_values_are_read_in_place_where_the_layout_allows_it():
    data = saved(np.arange(3, dtype=np.float32))
    assert not view_npy(data, entry_of(np.arange(3, dtype=np.float32))).flags.owndata
    assert make_header(np.dtype(np.float32), (3,)) == data[: -3 * 4]


def test_the_model_as_one_vector():
    parts = {"a": saved(np.ones((2, 2), np.float32)), "n": saved(np.asarray(3)), "b": saved(np.zeros(1, np.float16))}
    form = npy_model_form(parts)
    assert flat_model(form, parts).tolist() == [1, 1, 1, 1, 0]


def test_the_servers_own_mistakes_are_told_with_what_to_do():
    with pytest.raises(ValueError, match=r"the model's array 'w' cannot be read: .*; give arrays that NumPy saved"):
        npy_model_form({"w": b"PK"})
    with pytest.raises(ValueError, match="the model's array 'w' has dtype <U1"):
        npy_model_form({"w": saved(np.array(["a"]))})


def test_what_is_no_bytes():
    with pytest.raises(Unusable, match="array 'w' is list, not bytes"):
        view_npy([1.0], entry_of(np.zeros(1, np.float32)))
