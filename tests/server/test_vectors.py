from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedra.server import vectors as module
from fedra.server.form import model_form, view_array
from fedra.server.replies import Reply
from fedra.server.vectors import flat_vectors, give_back, less_model, rows_in_place

FORM = model_form({"a": (np.dtype(np.float32), (2,)), "n": (np.dtype(np.int8), ()), "b": (np.dtype(np.float16), ())})


def reply(place: int, fault: str = "") -> Reply:
    rng = np.random.default_rng(place)
    arrays = {
        "a": rng.standard_normal(2).astype(np.float32),
        "n": np.asarray(1, np.int8),
        "b": np.asarray(rng.standard_normal(), np.float16),
    }
    made = Reply(client=place, message=arrays, fault=fault)
    made.views = [] if fault else FORM.read(arrays, view_array)
    return made


@pytest.mark.parametrize("block", [1, 24, 30, 10**6])
@given(faults=st.lists(st.booleans(), max_size=7), threads=st.sampled_from([1, 2, None]), updates=st.booleans())
def test_one_vector_for_each_usable_reply_whatever_the_blocks(block, faults, threads, updates):
    replies = [reply(place, "bad" if fault else "") for place, fault in enumerate(faults)]
    released = []
    minus = np.array([1, 2, 3], np.float32) if updates else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK_BYTES", block)
        found = flat_vectors(replies, FORM, minus=minus, release=released.append, threads=threads)
    usable = [reply for reply in replies if not reply.fault]
    assert released == usable
    assert len(found) == len(usable)
    assert all(not each.views for each in usable)
    for vector, each in zip(found, usable, strict=True):
        whole = np.concatenate([each.message["a"], [each.message["b"].astype(np.float32)]])
        assert vector.dtype == np.float32
        np.testing.assert_array_equal(vector, whole if minus is None else whole - minus)


def test_less_model_leaves_the_vectors():
    vectors, model = [np.array([3e38, 1], np.float32)], np.array([-3e38, 1], np.float32)
    with np.errstate(all="raise"):
        (less,) = less_model(vectors, model)
    assert np.isinf(less[0])
    assert vectors[0].tolist() == np.array([3e38, 1], np.float32).tolist()


def test_giving_memory_back_is_harmless():
    give_back()


def test_replies_of_the_models_type_are_rows_where_they_lie():
    form = model_form(
        {"a": (np.dtype(np.float32), (2, 2)), "n": (np.dtype(np.int8), ()), "b": (np.dtype(np.float32), ())}
    )

    def sent(place, dtype=np.float32):
        arrays = {"a": np.full((2, 2), place, dtype), "n": np.asarray(1, np.int8), "b": np.asarray(-place, np.float32)}
        made = Reply(client=place, message=arrays)
        made.views = form.read({**arrays, "a": arrays["a"].astype(np.float32)}, view_array)
        made.views[0] = arrays["a"].reshape(-1)
        return made

    replies = [sent(1), Reply(client=2, message=None, fault="bad"), sent(3)]
    rows = rows_in_place(replies, form)
    assert np.asarray(rows).tolist() == [[1, 1, 1, 1, -1], [3, 3, 3, 3, -3]]
    assert rows.pieces[0][0] is replies[0].views[0]
    assert rows_in_place([*replies, sent(4, np.dtype(">f4"))], form) is None
    assert rows_in_place([], form) is None
