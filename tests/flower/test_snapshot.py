from __future__ import annotations

import copy
from collections import OrderedDict, defaultdict, deque
from dataclasses import dataclass
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, MetricRecord
from flwr.common import Parameters, ndarrays_to_parameters
from flwr.serverapp.strategy import FedAvg
from hypothesis import given
from hypothesis import strategies as st

from fedra.flower.snapshot import not_finite, put_back, snapshot


@dataclass
class Moments:
    first: Any
    count: int = 0


@dataclass(frozen=True)
class Fixed:
    held: Any


leaves = st.one_of(
    st.integers(),
    st.floats(allow_nan=False),
    st.text(max_size=3),
    st.none(),
    st.lists(st.floats(width=32, allow_nan=False), max_size=3).map(lambda v: np.asarray(v, np.float32)),
    st.floats(width=32, allow_nan=False).map(lambda v: ArrayRecord({"w": Array(np.asarray([v]))})),
    st.floats(allow_nan=False).map(lambda v: MetricRecord({"m": v})),
    st.floats(width=32, allow_nan=False).map(lambda v: ndarrays_to_parameters([np.asarray(v)])),
)
memories = st.recursive(
    leaves,
    lambda inside: st.one_of(
        st.lists(inside, max_size=3),
        st.dictionaries(st.text(max_size=2), inside, max_size=3),
        st.lists(inside, max_size=2).map(deque),
        st.lists(inside, max_size=2).map(tuple),
        st.dictionaries(st.text(max_size=2), inside, max_size=2).map(OrderedDict),
        st.lists(inside, max_size=2).map(lambda v: defaultdict(list, enumerate(v))),
        inside.map(Moments),
        inside.map(Fixed),
    ),
    max_leaves=8,
)


def spoil(value: Any) -> None:
    """Change all that can be changed in place."""
    if isinstance(value, np.ndarray):
        value[...] = np.nan
    elif isinstance(value, Array):
        value.data = b"spoilt"
    elif isinstance(value, ArrayRecord | MetricRecord | dict):
        for part in list(value.values()):
            spoil(part)
        value.clear()
    elif isinstance(value, list | deque | tuple):
        for part in value:
            spoil(part)
        if not isinstance(value, tuple):
            value.clear()
    elif isinstance(value, Moments | Fixed | Parameters):
        for part in vars(value).values():
            spoil(part)
        vars(value).clear()


def same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, ArrayRecord | MetricRecord | dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | deque | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, Moments | Fixed | Parameters):
        return same(vars(one), vars(other))
    return one == other


class Wrapper(FedAvg):
    def __init__(self, other: FedAvg) -> None:
        super().__init__()
        self.others = {"any name": [other]}


@given(memories, memories)
def test_whatever_is_done_to_memory_is_undone(outer, inner):
    wrapped = FedAvg()
    wrapper = Wrapper(wrapped)
    wrapper.memory, wrapped.memory = outer, inner
    expected = copy.deepcopy((outer, inner))
    before = snapshot(wrapper)
    spoil(wrapper.memory)
    spoil(wrapped.memory)
    wrapper.memory, wrapped.more = None, 5
    put_back(before)
    assert same((wrapper.memory, wrapped.memory), expected)
    assert not hasattr(wrapped, "more")
    assert wrapper.others["any name"][0] is wrapped


def test_what_is_held_twice_is_held_twice_again():
    strategy = FedAvg()
    strategy.a = [np.zeros(2)]
    strategy.b = {"same": strategy.a}
    strategy.c = strategy.b["itself"] = strategy.b
    before = snapshot(strategy)
    strategy.a[0] += 1
    put_back(before)
    assert strategy.b["same"] is strategy.a
    assert strategy.c["itself"] is strategy.c is strategy.b
    assert strategy.a[0].tolist() == [0, 0]


def test_a_generator_goes_on():
    """Noise that was drawn for a result that is not used is not drawn again."""
    strategy = FedAvg()
    strategy.generator = np.random.default_rng(0)
    before = snapshot(strategy)
    first = strategy.generator.random()
    put_back(before)
    assert strategy.generator.random() != first


def test_where_memory_is_not_finite():
    strategy = FedAvg()
    strategy.best, strategy.arrays, strategy.ok = float("inf"), {"w": [np.array([np.nan])]}, [1.0, 2, "nan"]
    strategy.record = ArrayRecord({"w": Array(np.array([np.inf]))})
    assert {name.split()[1] for name in not_finite(strategy)} == {"best", "arrays", "record"}
