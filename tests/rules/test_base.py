"""What every rule promises: judging with and without memory, and what a remembered state may be."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.comparing import assert_same_state, assert_same_verdict
from tests.strategies import RULE_NAMES, make_round

import fedra
from fedra.rules import initial_state
from fedra.rules.base import ascending_order

STATEFUL = [name for name in RULE_NAMES if issubclass(fedra.RULES[name], fedra.StatefulRule)]
STATELESS = [name for name in RULE_NAMES if name not in STATEFUL]


@dataclass(frozen=True, kw_only=True)
class Counting(fedra.StatefulRule):
    """The plain mean; remembers how many rounds there were, and the last round's clients."""

    name: ClassVar[str] = "counting"
    family: ClassVar[fedra.Family] = fedra.Family.IGNORANT

    least: int = 1

    def refusal(self, num_sampled):
        return f"counting needs {self.least} clients" if num_sampled < self.least else ""

    def init(self, dimension):
        return {"rounds": np.zeros(1, dtype=np.int64), "total": np.zeros(dimension)}

    def decide(self, cohort, state):
        weights = np.full(len(cohort), 1 / len(cohort))
        total = state["total"] + weights @ np.asarray(cohort.rows, dtype=np.float64)
        return fedra.Decision(weights=weights), {"rounds": state["rounds"] + 1, "total": total}


@dataclass(frozen=True, kw_only=True)
class Listing(fedra.Rule):
    """Names the clients it was given as its reasons."""

    name: ClassVar[str] = "listing"
    family: ClassVar[fedra.Family] = fedra.Family.IGNORANT

    def decide(self, cohort):
        kept = np.arange(len(cohort)) == 0
        return fedra.Decision(weights=kept.astype(float), kept=kept, reasons=[str(name) for name in cohort.client_ids])


def test_the_registry_has_both_kinds():
    assert STATEFUL == ["dnc", "centered-clipping"]


@pytest.mark.parametrize(
    "name",
    ["fedavg", "uniform", "median", "norm-bound", "rfa", "weighted-median", "huber", "centered-clipping", "truncate"],
)
@given(
    num_clients=st.none() | st.integers(1, 10**6),
    malicious_ratio=st.none() | st.floats(0, 0.49),
    setting=st.sampled_from([None, "fixed", "dynamic"]),
)
def test_a_rule_without_assumptions_is_the_same_for_any_federation(name, num_clients, malicious_ratio, setting):
    rule = fedra.make_rule(name)
    assert rule.for_federation(num_clients=num_clients, malicious_ratio=malicious_ratio, setting=setting) is rule


def test_an_own_rule_is_the_same_for_any_federation():
    rule = Listing()
    assert rule.for_federation() is rule
    assert rule.for_federation(num_clients=100, malicious_ratio=0.2, setting="fixed") is rule


@pytest.mark.parametrize("name", STATELESS)
def test_rules_that_remember_nothing_have_no_state(name):
    cohort = make_round(0, 9, 5)
    rule = fedra.make_rule(name)
    assert initial_state(rule, 5) is None
    plain = rule(cohort.updates, cohort.quantities)
    assert plain.state is None
    other = rule(cohort.updates, cohort.quantities, state={"centre": np.ones(5)})
    assert other.state is None
    assert other.update.tobytes() == plain.update.tobytes()
    assert rule(np.full((9, 5), np.nan), [1] * 9, state={"centre": np.ones(5)}).state is None


@pytest.mark.parametrize("rule", [fedra.CenteredClipping(), Counting()], ids=["centered-clipping", "counting"])
def test_no_state_is_the_state_before_the_first_round(rule):
    cohort = make_round(1, 9, 5)
    first = rule(cohort.updates, cohort.quantities)
    started = rule(cohort.updates, cohort.quantities, state=initial_state(rule, 5))
    assert_same_verdict(first, started)


@pytest.mark.parametrize("rule", [fedra.CenteredClipping(), Counting()], ids=["centered-clipping", "counting"])
def test_calling_is_screening_and_judging(rule):
    state = None
    for seed in range(3):
        cohort = make_round(seed, 9, 5)
        called = rule(cohort.updates, cohort.quantities, state=state)
        judged = rule.judge(fedra.screen(cohort.updates, cohort.quantities), state)
        assert_same_verdict(called, judged)
        state = called.state


def test_the_state_goes_from_verdict_to_verdict():
    rule, state = Counting(), None
    for number in range(1, 4):
        verdict = rule(np.full((2, 3), 2.0), [1, 1], state=state)
        state = verdict.state
        assert verdict.rule == "counting"
        assert state["rounds"].tolist() == [number]
        assert state["total"].tolist() == [2.0 * number] * 3


@pytest.mark.parametrize("state", [None, {"rounds": np.array([7]), "total": np.ones(2)}], ids=["none", "some"])
@pytest.mark.parametrize(
    ("updates", "note"),
    [
        (np.empty((0, 2)), "nobody took part"),
        (np.full((3, 2), np.nan), "nobody was left after screening"),
        ([np.ones(2), np.full(2, np.inf), np.ones(2)], "too few clients were left after screening: counting needs 3"),
    ],
    ids=["nobody", "all unusable", "too few"],
)
def test_a_round_without_update_leaves_the_state_as_it_was(updates, note, state):
    verdict = Counting(least=3)(updates, [1] * len(updates), state=state)
    assert verdict.update is None
    assert note in verdict.note
    assert verdict.state is state


def test_a_round_too_small_as_called_is_the_callers_mistake():
    with pytest.raises(ValueError, match="counting needs 3 clients"):
        Counting(least=3)(np.eye(2), [1, 1], state=Counting().init(2))


@pytest.mark.parametrize("rule", [fedra.CenteredClipping(), Counting()], ids=["centered-clipping", "counting"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_state_is_never_changed_in_place(rule, dtype):
    cohort = make_round(2, 9, 5, dtype)
    state = rule(cohort.updates, cohort.quantities).state
    before = {name: array.copy() for name, array in state.items()}
    for array in state.values():
        array.flags.writeable = False
    verdict = rule(cohort.updates, cohort.quantities, state=state)
    assert verdict.state is not state
    assert_same_state(state, before)
    for name, array in verdict.state.items():
        assert not np.shares_memory(array, state[name])
        assert not np.shares_memory(array, verdict.update)


@pytest.mark.parametrize("rule", [fedra.CenteredClipping(), Counting()], ids=["centered-clipping", "counting"])
def test_a_state_of_ones_own_is_restored_bit_for_bit(rule):
    cohort = make_round(3, 9, 5)
    state = rule(cohort.updates, cohort.quantities).state
    assert_same_state(rule.restore({name: array.copy() for name, array in state.items()}, 5), state)
    assert_same_state(rule.restore(rule.init(4), 4), rule.init(4))


FOREIGN = {
    "nothing": ({}, "it holds nothing, counting has rounds, total"),
    "a name less": ({"total": np.zeros(3)}, "it holds total, counting has rounds, total"),
    "a name more": (
        {"rounds": np.zeros(1, np.int64), "total": np.zeros(3), "x": np.zeros(3)},
        "it holds rounds, total, x, counting has rounds, total",
    ),
    "other names": ({"centre": np.zeros(3)}, "it holds centre"),
    "names that are no texts": ({1: np.zeros(3), None: np.zeros(3)}, "it holds 1, None"),
    "names that are no names": ({"\x1b[2J": np.zeros(3)}, r"it holds \[2J, counting"),
    "longer": (
        {"rounds": np.zeros(1, np.int64), "total": np.zeros(4)},
        r"total is float64 of shape \(4,\), counting has",
    ),
    "shorter": ({"rounds": np.zeros(1, np.int64), "total": np.zeros(2)}, r"total is float64 of shape \(2,\)"),
    "a matrix": ({"rounds": np.zeros(1, np.int64), "total": np.zeros((3, 1))}, r"shape \(3, 1\)"),
    "a number": ({"rounds": np.zeros((), np.int64), "total": np.zeros(3)}, r"rounds is int64 of shape \(\)"),
    "float32": ({"rounds": np.zeros(1, np.int64), "total": np.zeros(3, np.float32)}, "total is float32"),
    "other bytes": ({"rounds": np.zeros(1, ">i8"), "total": np.zeros(3)}, "rounds is >i8"),
    "objects": ({"rounds": np.zeros(1, np.int64), "total": np.zeros(3, object)}, "total is object"),
    "a list": ({"rounds": [0], "total": np.zeros(3)}, "rounds is a list, counting has int64"),
    "nan": (
        {"rounds": np.zeros(1, np.int64), "total": np.array([0, np.nan, 0])},
        "total holds values that are not fin",
    ),
    "inf": (
        {"rounds": np.zeros(1, np.int64), "total": np.array([0, 0, -np.inf])},
        "total holds values that are not fin",
    ),
    "no table": ([np.zeros(3)], "it holds list"),
}


@pytest.mark.parametrize(("state", "message"), FOREIGN.values(), ids=FOREIGN)
def test_a_state_of_something_else_is_refused(state, message):
    with pytest.raises(ValueError, match=message):
        Counting().restore(state, 3)


@pytest.mark.parametrize(("state", "message"), FOREIGN.values(), ids=FOREIGN)
def test_a_state_of_something_else_is_no_ground_for_a_decision(state, message):
    """A round whose updates have another length than the centre would otherwise be read beyond its end."""
    verdict = Counting()(np.ones((2, 3)), [1, 1], state=state)
    assert verdict.update is None
    assert verdict.note.startswith("the rule's state is not of these updates: ")
    assert verdict.state is state


@pytest.mark.parametrize("length", [0, 4, 6, 100_000])
def test_clients_of_another_length_do_not_get_at_the_centre(length):
    rule = fedra.CenteredClipping()
    state = rule(np.ones((4, 5)), [1] * 4).state
    verdict = rule(np.ones((4, length)), [1] * 4, state=state)
    assert verdict.update is None
    assert f"centre is float64 of shape (5,), centered-clipping has float64 of shape ({length},)" in verdict.note
    assert verdict.state is state
    assert all(verdict.reasons)


def test_identifiers_reach_the_rule_in_order_and_only_of_usable_clients():
    updates = [np.ones(2), np.full(2, np.nan), np.ones(2), np.ones(3), np.ones(2), np.ones(2)]
    claims, names = [5, 5, 5, 5, "five", 5], ["a", "b", ("c", 3), "d", "e", 6]
    screened = fedra.screen(updates, claims, names)
    assert screened.cohort.client_ids == ("a", ("c", 3), 6)
    verdict = Listing()(updates, claims, names)
    assert [verdict.reasons[i] for i in (0, 2, 5)] == ["", "('c', 3)", "6"]
    assert verdict.client_ids == tuple(names)
    assert Listing()(updates, claims).reasons[5] == "5"


def test_what_a_class_says_of_whole_models_is_not_inherited():
    class Stated(Listing):
        needs_updates = False

    class Derived(Stated):
        pass

    class Krum(fedra.Krum):
        pass

    assert Listing().needs_updates
    assert not Stated().needs_updates
    assert Derived().needs_updates
    assert not fedra.Krum().needs_updates
    assert Krum().needs_updates
    assert Counting().needs_updates


def test_ascending_order_breaks_ties_by_index():
    assert ascending_order(np.array([2.0, 1.0, 2.0, 0.0, 1.0])).tolist() == [3, 1, 4, 0, 2]
