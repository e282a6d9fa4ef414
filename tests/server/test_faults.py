from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fedra.server.faults import printable, short


@given(st.one_of(st.text(), st.binary(), st.integers(), st.floats(), st.lists(st.text())), st.integers(10, 80))
def test_whatever_was_sent_is_short_and_printable(value, limit):
    text = short(value, limit)
    assert text.isprintable()
    assert len(text) <= limit


def test_text_is_quoted_and_cut():
    assert short("a\nb") == "'a\\nb'"
    assert short("x" * 100, 10) == "'xxxxxx..."
    assert short(b"\x00") == "b'\\x00'"
    assert short(ValueError("why\x1b[31m")) == "why?[31m"


def test_an_error_that_cannot_say_what_it_is():
    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    assert short(Unspeakable()) == "Unspeakable"


def test_printable_keeps_what_is_printable():
    assert printable("grün 数", 20) == "grün 数"
    assert printable("a\tb\ud800", 20) == "a?b?"
