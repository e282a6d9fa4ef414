from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedra.server.faults import Unusable
from fedra.server.metrics import LARGEST_METRIC, plain_numbers, read_metrics, read_number

anything = st.one_of(
    st.integers(-(10**400), 10**400),
    st.floats(),
    st.booleans(),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.none(),
    st.lists(st.one_of(st.floats(), st.integers(-9, 9)), max_size=3),
    st.floats(width=32).map(np.float32),
    st.integers(-9, 9).map(np.int16),
    st.just(np.zeros(2)),
    st.just(np.bool_(True)),
)
metrics = st.dictionaries(st.one_of(st.text(max_size=3), st.integers()), anything, max_size=5)


def flat(value):
    return value if isinstance(value, list) else [value]


@given(metrics, st.booleans())
def test_what_is_read_is_plain_and_finite(sent, words):
    try:
        values, kinds = read_metrics(sent, leave_out="claim", words=words)
    except Unusable as error:
        fault = str(error)
    else:
        fault = ""
    assert fault.isprintable()
    if fault:
        return
    assert [name for name, _ in kinds] == sorted(values)
    for value in values.values():
        for number in flat(value):
            assert type(number) in ((int, float, bool, str, bytes) if words else (int, float))
            assert not isinstance(number, float) or math.isfinite(number)


def test_a_list_of_whole_and_other_numbers_is_one_of_floats():
    """Flower's records take lists of one type only, and raise for others."""
    values, kinds = read_metrics({"mixed": [1, 0.5], "whole": [1, 2], "none": []})
    assert values == {"mixed": [1.0, 0.5], "whole": [1, 2], "none": []}
    assert [type(number) for number in values["mixed"]] == [float, float]
    assert kinds == (("mixed", "a list of 2"), ("none", "a list of 0"), ("whole", "a list of 2"))


def test_the_claim_is_no_metric_and_is_not_judged_here():
    assert read_metrics({"claim": "many", "loss": 1}, leave_out="claim") == ({"loss": 1}, (("loss", "one number"),))


def test_words_are_for_those_who_may_send_them():
    assert read_metrics({"by": "me"}, words=True)[0] == {"by": "me"}
    with pytest.raises(Unusable, match="metric 'by' holds str, not numbers"):
        read_metrics({"by": "me"})


def test_too_much_is_counted_before_it_is_read():
    class Counted(list):
        def __iter__(self):
            raise AssertionError("was read")

    with pytest.raises(Unusable, match="10001 metrics, more than 10000"):
        read_metrics(dict.fromkeys(map(str, range(10_001)), 1.0))
    with pytest.raises(Unusable, match="hold 100001 numbers in lists, more than 100000: 'long' alone 100000"):
        read_metrics({"long": Counted([0.0] * 100_000), "short": Counted([0.0])})


@pytest.mark.parametrize("value", [math.nan, math.inf, 10**400, -1e101, np.float32("inf")])
def test_numbers_beyond_what_averages_hold(value):
    with pytest.raises(Unusable, match="not finite, or beyond 1e"):
        read_number("loss", value)


@pytest.mark.parametrize("value", [True, np.bool_(False), None, "1", 1j])
def test_what_is_no_number(value):
    with pytest.raises(Unusable, match="not numbers"):
        read_number("loss", value)


@given(st.one_of(st.none(), metrics))
def test_a_record_holds_few_finite_numbers_under_harmless_names(found):
    numbers = plain_numbers(found)
    json.dumps(numbers, allow_nan=False).encode()
    assert len(numbers) <= len(found or {})
    assert all(type(value) is float and abs(value) <= LARGEST_METRIC for value in numbers.values())
    assert all(name.isprintable() for name in numbers)


def test_which_metrics_a_record_holds():
    found = {"a": 1, "b": np.float32(0.5), "c": np.int64(7), "no": True, "words": "x", "list": [1.0], "nan": math.nan}
    assert plain_numbers(found) == {"a": 1.0, "b": 0.5, "c": 7.0}
    infinite = {"f": np.float32("inf"), "g": np.float16("-inf"), "h": np.longdouble("1e4000"), "i": 10**400}
    assert plain_numbers(infinite) == {}
    assert len(plain_numbers({f"metric {i}": i for i in range(500)})) == 100
    assert plain_numbers({"x\n" * 200: 1.0}) == {("x?" * 49)[:97] + "...": 1.0}
