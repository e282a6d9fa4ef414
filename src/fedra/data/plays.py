"""Plays as Project Gutenberg has them, taken apart: what each role says."""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from fedra.data.play_headings import beginning, find_headings
from fedra.data.stage_directions import without_directions

# LEAF's 80 characters (Caldas et al. 2018), in its order: what is predicted.
ALPHABET = "\n !\"&'(),-.0123456789:;>?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]abcdefghijklmnopqrstuvwxyz}"

_WORD = re.compile(r"[^\W_]")


class Line(NamedTuple):
    """A line of a play: what of it is spoken, and by whom; None where it is before any name."""

    said: str
    role: str | None


def speeches(text: str) -> dict[str, str]:
    """Return what each role of a play says from beginning to end, by the name above its speeches, in capitals.

    Stage directions, and all before the first act, prologue or induction, are left out. A role whose name is written
    in two ways counts as two.
    """
    said: dict[str, list[str]] = {}
    for line in spoken_lines(text):
        if line.role is not None and line.said:
            said.setdefault(line.role, []).append(line.said)
    whole = {role: _normalised("\n".join(parts)) for role, parts in said.items()}
    return {role: words for role, words in whole.items() if words}


def spoken_lines(text: str) -> list[Line]:
    """Return what is left of each line of a play without directions, headings and what is before the beginning."""
    printed, lines = text.split("\n"), without_directions(text).split("\n")
    begin = beginning(printed)
    names, titles = find_headings(printed[begin:], lines[begin:])
    found = [Line("", None)] * begin
    role: str | None = None
    for place, line in enumerate(lines[begin:]):
        said = "" if place in titles or not _WORD.search(line) else line.strip()
        if place in names:
            role, said = names[place]
        found.append(Line(said, role))
    return found


def _normalised(text: str) -> str:
    """Return what is said in the 80 characters: accents taken off, others left out."""
    plain = unicodedata.normalize("NFKD", re.sub(r"[ \t]+", " ", text).replace("\u2014", "--").replace("\u2019", "'"))
    lines = ("".join(letter for letter in line if letter in _KNOWN).strip() for line in plain.split("\n"))
    return "\n".join(line for line in lines if line)


_KNOWN = frozenset(ALPHABET)
