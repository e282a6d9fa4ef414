"""Texts that others chose, made harmless; files are in tests/security."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedra.untrusted import clipped, one_line


class Silent:
    def __str__(self):
        raise OSError("not even this")


class Text(str):
    __slots__ = ()

    def __str__(self):
        return self

    def __getitem__(self, key):
        raise KeyError


ANYTHING = st.text() | st.binary() | st.integers() | st.none() | st.floats() | st.builds(Silent)


@given(ANYTHING, st.integers(1, 100))
def test_a_clipped_text_is_short_printable_and_on_one_line(text, longest):
    line = clipped(text, longest)
    assert line.isprintable()
    assert len(line) <= longest
    assert line == " ".join(line.split())


@given(st.text())
def test_one_line_keeps_what_can_be_printed(text):
    assert one_line(text).isprintable()
    assert one_line(one_line(text)) == one_line(text)
    if text.isprintable():
        assert one_line(text) == " ".join(text.split())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[31mred\x1b[0m\r\nalert\u202e", "[31mred [0m alert"),
        ("a\u2028b\ue000c\udcffd", "a b c d"),
        ("x" * 500, "x" * 299 + "\N{HORIZONTAL ELLIPSIS}"),
        (10**5000, "a number of thousands of digits"),
        (Silent(), "Silent"),
        (Text("x"), "Text"),
        ("", ""),
        (None, "None"),
    ],
    ids=["control", "not printable", "long", "huge number", "silent", "text", "empty", "none"],
)
def test_clipped_by_hand(text, expected):
    assert clipped(text) == expected
