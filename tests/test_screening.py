"""Screening by itself; what hostile clients send is in tests/rules/test_hostile_*.py."""

import numpy as np
import pytest

import fedra


def test_usable_clients_become_the_cohort():
    updates = [np.ones(3), np.full(3, np.nan), np.full(3, 2.0), np.ones(4)]
    screened = fedra.screen(updates, [5, 6, 7, 8], ["a", "b", "c", "d"])
    assert len(screened) == 4
    assert screened.usable.tolist() == [True, False, True, False]
    assert len(screened.cohort) == 2
    assert screened.cohort.quantities.tolist() == [5.0, 7.0]
    assert screened.quantities.tolist() == [5.0, 6.0, 7.0, 8.0]
    assert screened.client_ids == ("a", "b", "c", "d")
    assert screened.reasons == (
        "",
        "update holds values that are not finite",
        "",
        "update has 4 values instead of 3",
    )


@pytest.mark.parametrize("place", [0, 1, 4])
@pytest.mark.parametrize("length", [0, 2, 100])
def test_one_client_of_another_length_is_the_odd_one_wherever_it_stands(place, length):
    updates = [np.ones(3) for _ in range(5)]
    updates[place] = np.ones(length)
    screened = fedra.screen(updates, [1] * 5)
    assert np.flatnonzero(~screened.usable).tolist() == [place]
    assert screened.reasons[place] == f"update has {length} values instead of 3"


def test_the_servers_own_length_beats_the_majority():
    updates = [np.ones(4), np.ones(4), np.ones(4), np.ones(3)]
    screened = fedra.screen(updates, [1] * 4, dimension=3)
    assert screened.usable.tolist() == [False, False, False, True]


def test_the_first_reason_stands():
    screened = fedra.screen([np.ones(2), np.ones(2), np.ones(5)], [1, 0, "x"])
    assert screened.reasons[1] == "quantity is 0, not a number from 1 to 2**53"
    assert screened.reasons[2] == "update has 5 values instead of 2"


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        (True, "quantity is of type bool, not a number"),
        (np.True_, "quantity is of type bool, not a number"),
        ("5", "quantity '5' is of type str, not a number"),
        (b"5", "quantity b'5' is of type bytes, not a number"),
        (None, "quantity is of type NoneType, not a number"),
        (np.array(5.0), "quantity is of type ndarray, not a number"),
        (5j, "quantity is of type complex, not a number"),
        (float("nan"), "quantity is nan, not a finite number"),
        (float("inf"), "quantity is inf, not a finite number"),
        (-3, "quantity is -3, not a number from 1 to 2**53"),
        (np.nextafter(1.0, 0), "quantity is 1, not a number from 1 to 2**53"),
        (2**53 + 2, "quantity is 9.0072e+15, not a number from 1 to 2**53"),
        (10**400, "quantity is inf, not a finite number"),
        ("\x1b[2J", "quantity '\\x1b[2J' is of type str, not a number"),
    ],
)
def test_reasons_say_what_was_claimed(claim, reason):
    assert fedra.screen([np.ones(2), np.ones(2)], [claim, 1]).reasons == (reason, "")


def test_reasons_say_what_was_sent():
    updates = [np.ones(2), np.ones(2, dtype=int), np.ones((2, 1)), "text", np.full(2, 1e150)]
    assert fedra.screen(updates, [1] * 5).reasons == (
        "",
        "update has dtype int64 instead of float32 or float64",
        "update has shape (2, 1) instead of one dimension",
        "update has dtype <U4 instead of float32 or float64",
        "update holds a value of 1e+150, beyond 1e+140 where distances overflow",
    )


def test_the_float_type_is_the_one_most_clients_sent():
    single, double = np.ones(3, dtype=np.float32), np.ones(3)
    assert fedra.screen([double, single, single], [1] * 3).cohort.rows.dtype == np.float32
    assert fedra.screen([single, double, double], [1] * 3).cohort.rows.dtype == np.float64


def test_a_long_complaint_is_cut_short():
    class Chatty:
        def __array__(self, dtype=None, copy=None):
            raise ValueError("x" * 10_000)

    assert len(fedra.screen([np.ones(2), np.ones(2), Chatty()], [1] * 3).reasons[2]) < 200


def test_a_screened_round_can_be_judged_by_many_rules():
    rng = np.random.default_rng(0)
    updates = rng.standard_normal((9, 4))
    screened = fedra.screen(updates, range(1, 10))
    for name in fedra.RULES:
        rule = fedra.make_rule(name)
        np.testing.assert_array_equal(rule.judge(screened).update, rule(updates, range(1, 10)).update)


def test_judging_a_round_too_small_never_raises():
    verdict = fedra.Krum().judge(fedra.screen(np.eye(2), [1, 1]))
    assert verdict.update is None
    assert "n = 2 and m = 1" in verdict.note
