"""Plays taken apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedra.data.plays import ALPHABET, speeches

PLAY = """THE PLAY

DRAMATIS PERSONAE.

ROMEO.
a young man, not yet on stage

ACT I. SCENE I. A street.

[Enter ROMEO
and NURSE.]

ROMEO.
Good   morrow, cousin. [Aside.] Is the day so young?

[Music.]

But new struck nine.

SECOND NURSE. [Within.]
Anon!

Scene II. Elsewhere.
Nobody says this.

ROMEO
Is love a tender thing? caf\u00e9\u2014so?

SONG.
Who is Silvia?
"""


def test_alphabet_is_leafs() -> None:
    assert len(ALPHABET) == len(set(ALPHABET)) == 80


def test_each_role_says_what_stands_below_its_name() -> None:
    assert speeches(PLAY) == {
        "ROMEO": (
            "Good morrow, cousin. Is the day so young?\nBut new struck nine.\n"
            "Is love a tender thing? cafe--so?\nWho is Silvia?"
        ),
        "SECOND NURSE": "Anon!",
    }


def test_a_play_may_write_names_in_small_letters() -> None:
    play = PLAY.replace("ROMEO.", "Romeo.").replace("ROMEO\n", "Romeo.\n").replace("SECOND NURSE.", "Sec. Nurse.")
    assert set(speeches(play)) == {"ROMEO", "SEC. NURSE"}


@pytest.mark.parametrize("text", ["", "\n\n", "ACT I", "ROMEO.", "just words\nand more", "[[[[", "ACT I\n\nA.\n[]"])
def test_what_is_no_play_has_no_roles(text: str) -> None:
    assert speeches(text) == {}


WORDS = st.sampled_from(
    ["ROMEO.", "Jul.", "ACT I", "[Exit.]", "[", "]", "", "", "He speaks.", "\u00e9t\u00e9", "\t x \x0b"]
)


@given(st.lists(WORDS | st.text(max_size=12), max_size=40))
def test_whatever_is_read_is_said_in_the_alphabet(lines: list[str]) -> None:
    text = "\n".join(lines)
    said = speeches(text)
    assert all(words and set(words) <= set(ALPHABET) for words in said.values())
    assert all(role == role.upper().strip() for role in said)
    assert all(line.strip() == line and line for words in said.values() for line in words.split("\n"))
