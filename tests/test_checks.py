from __future__ import annotations

import decimal
import math
import pathlib
import unicodedata
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedra import checks

LONGEST_MESSAGE = 300
VALID = ("fixed", "dynamic")

CHECKS: dict[str, Callable[[Any], Any]] = {
    "whole": lambda value: checks.whole("count", value),
    "whole from to": lambda value: checks.whole("count", value, 1, 9),
    "number": lambda value: checks.number("count", value),
    "number within": lambda value: checks.number("count", value, above=0, most=1),
    "number of at least": lambda value: checks.number("count", value, least=0, below=3),
    "ratio": lambda value: checks.ratio(value, "count"),
    "switch": lambda value: checks.switch("count", value),
    "text": lambda value: checks.text("count", value),
    "table": lambda value: checks.table("count", value),
    "choice": lambda value: checks.choice("count", value, VALID),
    "at most one": lambda value: checks.at_most_one(count=value, other=value),
}


class Odd:
    """Has a representation that a terminal would obey."""

    def __repr__(self) -> str:
        return "\x1b[31mred\r\nover\x07there\N{RIGHT-TO-LEFT OVERRIDE}" * 40


class Silent:
    """Has no representation."""

    def __repr__(self) -> str:
        raise RuntimeError("no words")


ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=10**5000, max_value=10**5001),
    st.floats(),
    st.fractions(),
    st.decimals(),
    st.complex_numbers(),
    st.text(),
    st.binary(),
    st.lists(st.integers() | st.text()),
    st.dictionaries(st.text(), st.integers()),
    st.sampled_from(
        [
            Odd(),
            Silent(),
            [Silent()],
            [10**5000],
            -(10**5000),
            Fraction(10**400, 3),
            np.float32(0.25),
            np.int64(3),
            np.uint8(2),
            np.bool_(True),
            np.datetime64("NaT"),
            np.array([1, 2]),
            np.array(0.5),
            object,
            "x" * 10**6,
            "\ud800\x1b[2J\n",
            *VALID,
        ]
    ),
)


@pytest.mark.parametrize("check", CHECKS)
@given(value=ANYTHING)
def test_whatever_is_given_is_returned_or_refused_in_one_short_line(check: str, value: Any) -> None:
    try:
        CHECKS[check](value)
    except (TypeError, ValueError) as error:
        message = str(error)
        assert message.startswith("count=")
        assert checks.display_value(value) in message
        assert len(message) <= LONGEST_MESSAGE
        assert not [letter for letter in message if unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp")]


@pytest.mark.parametrize("check", CHECKS)
@given(value=ANYTHING)
def test_what_is_returned_is_what_was_given(check: str, value: Any) -> None:
    try:
        found = CHECKS[check](value)
    except (TypeError, ValueError):
        return
    if check == "at most one":
        assert value is None
    elif isinstance(value, float | Fraction) or check.startswith(("number", "ratio")):
        assert found == float(value)
    else:
        assert found == value
        assert isinstance(found, bool) == isinstance(value, bool)


@given(value=st.integers(-20, 20), least=st.integers(-10, 10), most=st.integers(-10, 10))
def test_whole_numbers_within_their_range(value: int, least: int, most: int) -> None:
    assert checks.is_whole(value, least, most) == (least <= value <= most)
    if least <= value <= most:
        assert checks.whole("count", np.int64(value), least, most) == value
        assert type(checks.whole("count", np.int64(value), least, most)) is int
    else:
        with pytest.raises(ValueError, match=f"count={value}; give a whole number from {least} to {most}"):
            checks.whole("count", value, least, most)


@given(value=st.floats(allow_nan=False), least=st.floats(-5, 5), most=st.floats(-5, 5))
def test_numbers_within_their_range(value: float, least: float, most: float) -> None:
    within = math.isfinite(value) and least <= value <= most
    assert checks.is_number(value, least, most) == within
    if within:
        assert checks.number("count", value, least=least, most=most) == value
    else:
        with pytest.raises(ValueError, match=r"give a finite number of at least .* of at most "):
            checks.number("count", value, least=least, most=most)


@pytest.mark.parametrize(
    ("bounds", "value", "wanted"),
    [
        ({"above": 0}, 0, "a finite number above 0"),
        ({"below": 1}, 1.0, "a finite number below 1"),
        ({"least": 0, "below": 1}, 1, "a finite number of at least 0 below 1"),
        ({}, math.nan, "a finite number"),
        ({}, math.inf, "a finite number"),
        ({}, Fraction(10**400), "a finite number"),
        ({"wanted": "a share"}, math.inf, "a share"),
    ],
)
def test_numbers_out_of_range_say_what_to_give(bounds: dict[str, Any], value: Any, wanted: str) -> None:
    with pytest.raises(ValueError, match=r"^count=") as caught:
        checks.number("count", value, **bounds)
    assert str(caught.value).endswith(f"; give {wanted}")


@pytest.mark.parametrize("value", [True, False, np.True_, "1", None, 1j, decimal.Decimal(1), [1]])
def test_what_is_no_number_is_of_the_wrong_kind(value: Any) -> None:
    assert not checks.is_number(value)
    assert not checks.is_whole(value)
    for check in (checks.whole, checks.number):
        with pytest.raises(TypeError, match=r"^count="):
            check("count", value)
    with pytest.raises(TypeError, match=r"^malicious_ratio="):
        checks.ratio(value)


def test_a_whole_number_is_no_fraction() -> None:
    with pytest.raises(TypeError, match=r"count=1\.0; give a whole number of at least 0"):
        checks.whole("count", 1.0)


@pytest.mark.parametrize("value", [-0.1, 0.5, 1, math.nan])
def test_half_the_clients_are_too_many(value: float) -> None:
    with pytest.raises(ValueError, match="no rule can stand against half the clients"):
        checks.ratio(value)


def test_a_text_is_no_switch_and_a_switch_no_text() -> None:
    assert checks.switch("clamp", False) is False
    with pytest.raises(TypeError, match="clamp='no'; give True or False"):
        checks.switch("clamp", "no")
    with pytest.raises(TypeError, match="label=True; give a text"):
        checks.text("label", True)
    with pytest.raises(TypeError, match="label=3; give the name of a file"):
        checks.text("label", 3, "the name of a file")


def test_a_list_is_no_table() -> None:
    with pytest.raises(TypeError, match=r"params=\[1\]; give a table, such as"):
        checks.table("params", [1])


def test_a_choice_lists_what_is_valid_and_names_the_nearest() -> None:
    assert checks.choice("setting", "fixed", VALID) == "fixed"
    with pytest.raises(ValueError, match=r"setting='dynamc'; did you mean 'dynamic'\? valid: fixed, dynamic"):
        checks.choice("setting", "dynamc", VALID)
    with pytest.raises(TypeError, match="setting=1; valid: fixed, dynamic"):
        checks.choice("setting", 1, VALID)


def test_a_choice_between_numbers_is_no_choice_between_switches() -> None:
    assert checks.choice("order", 1, [1, 2]) == 1
    with pytest.raises(ValueError, match="order=3; valid: 1, 2"):
        checks.choice("order", 3, [1, 2])
    with pytest.raises(TypeError, match="order=True; valid: 1, 2"):
        checks.choice("order", True, [1, 2])


def test_of_alternatives_one_at_most() -> None:
    checks.at_most_one(alpha_q=None, claimed_quantity=0)
    with pytest.raises(ValueError, match="alpha_q=0 and claimed_quantity=2; give one of them"):
        checks.at_most_one(alpha_q=0, claimed_quantity=2, other=None)


def test_long_values_are_cut_and_huge_numbers_described() -> None:
    assert checks.display_value("x" * 200) == f"'{'x' * 76}..."
    assert checks.display_value(10**79) == str(10**79)
    assert checks.display_value(2**1000) == "a whole number of 1001 bits"
    assert checks.display_value(-(10**5000)) == f"a whole number of {(10**5000).bit_length()} bits"
    assert checks.display_value(Silent()) == "a Silent"


@pytest.mark.parametrize("value", ["", "\0", "\ud800", b"x", 5, None, True, [], pathlib.PurePosixPath("a\0b")])
def test_a_path_is_one_that_a_file_can_have(value):
    with pytest.raises((TypeError, ValueError), match=r"^state=.*; give the path of a file"):
        checks.path("state", value)
    assert checks.path("state", "a/b") == checks.path("state", pathlib.Path("a/b")) == pathlib.Path("a/b")
