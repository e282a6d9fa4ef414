from __future__ import annotations

import enum

import flwr.server.strategy as older
import flwr.serverapp.strategy as current
import numpy as np
import pytest
from flwr.common import ndarrays_to_parameters
from tests.flower.both import Accountant

from fedra import make_rule
from fedra.flower.inner import (
    InnerMemory,
    accountants,
    check_selects,
    check_settable,
    inner_memory,
    inner_setting,
    layers,
    recall_inner,
)
from fedra.server.state import SavedState


def wrapped(strategy):
    return current.DifferentialPrivacyServerSideFixedClipping(strategy, 0.1, 1.0, 7)


def saved(memory: InnerMemory, **changes) -> SavedState:
    arrays, numbers = memory.memory()
    return SavedState(
        **{"round": 1, "writer": memory.writer, "arrays": {}, "memory": arrays, "numbers": numbers, **changes}
    )


def test_layers_are_outermost_first_in_either_api():
    inner = current.FedAvg()
    outer = wrapped(inner)
    assert list(layers(outer)) == [outer, inner]
    old = older.FedAvg()
    assert list(layers(older.DifferentialPrivacyServerSideFixedClipping(old, 0.1, 1.0, 7)))[1] is old
    inner.strategy = inner
    assert list(layers(inner)) == [inner]
    assert list(layers(3)) == []


def test_settings_are_found_through_wrappers():
    assert inner_setting(wrapped(current.FedAvg(weighted_by_key="samples")), "weighted_by_key", "x") == "samples"
    assert inner_setting(current.FedAvg(), "train_loss_key", None) is None


@pytest.mark.parametrize("wrap", [lambda s: s, wrapped], ids=["alone", "wrapped"])
def test_arrays_come_back_bit_for_bit(wrap):
    one, other = current.FedAdam(), current.FedAdam()
    one.m_t = {"w/1": np.arange(3.0), "s": np.float32(2)}
    one.v_t = [np.ones((2, 2), np.float16), np.asarray(3)]
    one.current_arrays = np.zeros((0, 2))
    recall_inner(wrap(other), inner_memory(wrap(one)))
    assert other.m_t["w/1"].tobytes() == one.m_t["w/1"].tobytes()
    assert other.m_t["s"].dtype == np.float32
    assert [array.dtype for array in other.v_t] == [np.float16, np.asarray(3).dtype]
    assert other.current_arrays.shape == (0, 2)


def test_arrays_of_the_older_api_come_back():
    first = ndarrays_to_parameters([np.zeros(2, np.float32)])
    one, other = older.FedAdam(initial_parameters=first), older.FedAdam(initial_parameters=first)
    one.m_t = [np.arange(2.0)]
    recall_inner(other, inner_memory(one))
    assert other.m_t[0].tolist() == [0, 1]


@pytest.mark.parametrize("name", ["__class__", "__dict__", "aggregate_train", "configure_train", "start"])
def test_what_a_strategy_does_is_not_replaced(name):
    with pytest.raises(ValueError, match="is nothing that FedAvg remembers"):
        check_settable(current.FedAvg(), name)
    with pytest.raises(ValueError, match="is nothing that FedAvg remembers"):
        recall_inner(current.FedAvg(), {f"0\x1f{name}": np.zeros(1)})


def test_numbers_that_moved_are_remembered_and_settings_are_not():
    one, other = current.FedAvg(), current.FedAvg(min_train_nodes=5)
    one.norm, one.label = 0.1, "a"
    memory = InnerMemory(one, saved=True)
    one.norm = 0.1 + 0.2
    other.norm, other.label = 0.1, "b"
    again = InnerMemory(other, saved=True)
    again.recall(saved(memory))
    assert (other.norm.hex(), other.label, other.min_train_nodes) == ((0.1 + 0.2).hex(), "b", 5)
    assert "0\x1fnorm" in again.memory()[1]["moved"]


def test_what_changed_before_the_run_is_a_setting():
    one = current.FedAvg()
    one.norm = 0.1
    memory = InnerMemory(one, saved=True)
    one.norm = 0.7
    memory.begin()
    assert memory.memory()[1]["moved"] == {}


def test_an_enum_is_no_number():
    class Kind(enum.IntEnum):
        A = 1

    one = current.FedAvg()
    memory = InnerMemory(one, saved=True)
    one.kind = Kind.A
    assert memory.memory()[1]["moved"] == {}


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("0\x1fnorm", [1]),
        ("0\x1fnorm", "text"),
        ("7\x1fnorm", 1.0),
        ("0\x1fstart", 1.0),
        ("norm", 1.0),
        ("0\x1fa\x1fb", 1),
    ],
)
def test_values_that_cannot_have_come_of_this_strategy(place, value):
    one = current.FedAvg()
    one.norm = 0.1
    memory = InnerMemory(one, saved=True)
    with pytest.raises((ValueError, IndexError)):
        memory.recall(saved(memory, numbers={"moved": {place: value}}))
    assert one.norm == 0.1


def accounted():
    strategy = current.FedAvg()
    strategy.accountant = Accountant()
    return strategy


def test_accountants_are_found_saved_and_restored():
    one, other = wrapped(accounted()), wrapped(accounted())
    (place,) = accountants(one)
    assert place == ("1", "accountant")
    accountants(one)[place].count = 3
    InnerMemory(other, saved=True).recall(saved(InnerMemory(one, saved=True)))
    assert accountants(other)[place].count == 3


def test_privacy_spent_is_neither_forgotten_nor_made_up():
    with_one, without = InnerMemory(accounted(), saved=True), InnerMemory(current.FedAvg(), saved=True)
    with pytest.raises(ValueError, match="holds the privacy spent by `accountant`"):
        without.recall(saved(with_one))
    with pytest.raises(ValueError, match="does not hold the privacy spent by `accountant`"):
        with_one.recall(saved(without))


def test_who_writes_the_state():
    assert InnerMemory(wrapped(current.FedAdam()), saved=False).writer == (
        "Guard of DifferentialPrivacyServerSideFixedClipping of FedAdam"
    )


def test_rules_that_do_not_select_are_named_with_those_that_do():
    check_selects(make_rule("krum"))
    with pytest.raises(ValueError, match=r"rule 'median' does not select clients.*krum.*RobustStrategy"):
        check_selects(make_rule("median"))
