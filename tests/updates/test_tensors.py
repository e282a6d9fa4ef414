from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedra.server.faults import Unusable
from fedra.updates.tensors import KINDS, Tensor, base_form, common_form, form_of, narrowed, widened

FLOAT32 = st.floats(width=32, allow_nan=False)


def tensor(kind: str = "F32", shape: tuple[int, ...] = (2,), offset: int = 0) -> Tensor:
    return Tensor(kind=KINDS[kind], shape=shape, file=0, offset=offset)


@given(st.lists(FLOAT32, min_size=1))
def test_bfloat16_is_rounded_as_torch_rounds(values: list[float]) -> None:
    torch = pytest.importorskip("torch")
    array = np.array(values, dtype=np.float32)
    expected = torch.from_numpy(array).to(torch.bfloat16).view(torch.uint16).numpy()
    assert narrowed(array, KINDS["BF16"]).tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_bfloat16_survives_the_way_there_and_back(dtype: type) -> None:
    raw = np.arange(1 << 16, dtype=np.uint16)
    raw = raw[(raw & 0x7F80) != 0x7F80]
    target = np.empty(raw.size, dtype=dtype)
    widened(raw, KINDS["BF16"], target)
    assert np.isfinite(target).all()
    assert (narrowed(target, KINDS["BF16"]) == raw).all()


def test_every_float16_survives_the_way_there_and_back() -> None:
    raw = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    raw = raw[np.isfinite(raw)]
    target = np.empty(raw.size, dtype=np.float32)
    widened(raw, KINDS["F16"], target)
    assert narrowed(target, KINDS["F16"]).tobytes() == raw.tobytes()


def test_columns_are_the_floats_in_order() -> None:
    form = form_of({"b": tensor(shape=(2, 3)), "n": tensor("I64"), "a": tensor("F16", ())}, ["a", "b", "n"])
    assert [(slot.name, slot.start, slot.stop) for slot in form.slots] == [("a", 0, 1), ("b", 1, 7), ("n", 7, 7)]
    assert form.dimension == 7
    assert form.dtype == np.float32
    assert [slot.name for slot in form.trained] == ["a", "b"]
    assert form_of({"a": tensor("F64")}, ["a"]).dtype == np.float64


def test_a_base_has_its_columns_as_they_lie() -> None:
    form = base_form({"a": tensor(offset=100), "b": tensor(offset=50)})
    assert [slot.name for slot in form.slots] == ["b", "a"]


def test_more_than_half_choose_the_form() -> None:
    one, other = {"b": tensor(), "a": tensor()}, {"a": tensor("F64")}
    form = common_form([other, one, one])
    assert form is not None
    assert [slot.name for slot in form.slots] == ["a", "b"]
    assert common_form([one, other]) is None
    assert common_form([]) is None


def test_the_same_tensors_in_another_order_are_the_same_form() -> None:
    form = common_form([{"a": tensor(), "b": tensor(offset=8)}, {"b": tensor(), "a": tensor(offset=8)}])
    assert form is not None
    form.check({"b": tensor(offset=3), "a": tensor(offset=99)})
    with pytest.raises(Unusable, match="1 tensors instead of 2: lacks tensor 'b'"):
        form.check({"a": tensor()})
