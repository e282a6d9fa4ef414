from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedra.server.faults import Unusable
from fedra.server.form import ModelForm, model_form, view_array

FLOATS = [np.float16, np.float32, np.float64]
OTHERS = [np.int8, np.int64, np.uint8, np.bool_]


@st.composite
def models(draw, dtypes=tuple(FLOATS + OTHERS)) -> dict[str, np.ndarray]:
    names = draw(st.lists(st.text(max_size=4), unique=True, max_size=5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    shapes = st.lists(st.integers(0, 4), max_size=3).map(tuple)
    return {
        name: np.asarray(rng.standard_normal(draw(shapes)) * 4).astype(draw(st.sampled_from(dtypes))) for name in names
    }


def form_of(arrays: dict[str, np.ndarray], first: ModelForm | None = None) -> ModelForm:
    return model_form({name: (array.dtype, array.shape) for name, array in arrays.items()}, first)


@given(models())
def test_flat_and_split_are_the_model_again(arrays):
    form = form_of(arrays)
    flat = form.flat(form.read(arrays, view_array))
    trained = {name: array for name, array in arrays.items() if array.dtype.kind == "f"}
    assert flat.shape == (form.dimension,) == (sum(array.size for array in trained.values()),)
    assert flat.dtype == form.dtype
    again = form.split(flat)
    assert list(again) == list(trained)
    for name, array in trained.items():
        assert (again[name].dtype, again[name].shape) == (array.dtype, array.shape)
        assert again[name].tobytes() == array.tobytes()


@given(models(), models())
def test_pinned_entries_are_the_servers(sent, other):
    form = form_of(sent)
    result = {name: np.ones_like(array) for name, array in sent.items()}
    pinned = form.pinned(result, sent)
    assert list(pinned) == list(sent)
    for name, array in sent.items():
        assert pinned[name] is (result[name] if array.dtype.kind == "f" else array)


@given(models(dtypes=(np.float32,)))
def test_flatten_less_the_model(arrays):
    form = form_of(arrays)
    flat = form.flat(form.read(arrays, view_array))
    target = np.full(form.dimension, np.nan, dtype=form.dtype)
    form.flatten([2 * view for view in form.read(arrays, view_array)], target, flat)
    np.testing.assert_array_equal(target, flat)


def test_what_overflows_stays_so_without_a_warning():
    form = form_of({"w": np.zeros(1, np.float32)})
    target = np.zeros(1, np.float32)
    with np.errstate(all="raise"):
        form.flatten([np.array([3e38], np.float32)], target, np.array([-3e38], np.float32))
    assert math.isinf(target[0])


def test_any_layout_of_the_same_values_is_read_alike():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    form = form_of({"w": array})
    for layout in (array, np.asfortranarray(array), array.astype(">f4"), np.repeat(array, 2, axis=1)[:, ::2]):
        assert form.flat(form.read({"w": layout}, view_array)).tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (np.zeros((3, 2), np.float32), "has shape (3, 2) instead of (2, 3)"),
        (np.zeros((2, 3), np.float64), "has dtype float64 instead of float32"),
        (np.zeros((2, 3), object), "has dtype object instead of float32"),
        ([[0.0] * 3] * 2, "is 'list', not a NumPy array"),
    ],
)
def test_other_arrays_are_refused(array, reason):
    form = form_of({"w\n": np.zeros((2, 3), np.float32)})
    with pytest.raises(Unusable) as fault:
        form.read({"w\n": array}, view_array)
    assert str(fault.value) == f"array 'w\\n' {reason}"


def test_other_names_are_refused_before_anything_is_read():
    form = form_of({"a": np.zeros(1), "b": np.zeros(1)})

    def never(array, entry):
        raise AssertionError("was read")

    with pytest.raises(Unusable, match="2 arrays instead of 2: lacks array 'b', has an unknown array 'c'"):
        form.read({"a": 1, "c": 2}, never)
    with pytest.raises(Unusable, match="1 arrays instead of 2"):
        form.check_names({"a": 1})


def test_a_reply_may_have_the_first_rounds_type_or_the_current_one():
    first = form_of({"w": np.zeros(2, np.float32), "steps": np.zeros(2, np.int64)})
    now = form_of({"w": np.zeros(2, np.float64), "steps": np.zeros(2, np.float64)}, first)
    assert [entry.trained for entry in now.entries] == [True, False]
    assert now.entries[0].widest == np.float64
    for dtype in (np.float32, np.float64):
        now.read({"w": np.zeros(2, dtype), "steps": np.zeros(2, np.int64)}, view_array)
    with pytest.raises(Unusable, match="float16"):
        now.read({"w": np.zeros(2, np.float16), "steps": np.zeros(2, np.int64)}, view_array)
    with pytest.raises(Unusable, match="'steps' holds values that are not finite"):
        now.read({"w": np.zeros(2), "steps": np.array([0, np.nan])}, view_array)


@pytest.mark.parametrize("dtype", [np.complex64, np.longdouble, object, "U3"])
def test_models_that_fedra_cannot_work_with(dtype):
    with pytest.raises(ValueError, match=r"the model's array 'w' has dtype.*use float16"):
        form_of({"w": np.zeros(2, dtype)})


def test_the_vector_is_wide_only_where_the_model_is():
    assert form_of({"w": np.zeros(2, np.float16)}).dtype == np.float32
    assert form_of({"steps": np.zeros(2, np.int64)}).dtype == np.float32
    assert form_of({"w": np.zeros(2, np.float16), "v": np.zeros(2)}).dtype == np.float64
    assert ModelForm().dimension == 0
