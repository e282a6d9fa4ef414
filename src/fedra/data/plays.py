"""Plays as Project Gutenberg has them, taken apart: what each role says."""

from __future__ import annotations

import re
import unicodedata

# LEAF's 80 characters (Caldas et al. 2018), in its order: what is predicted.
ALPHABET = "\n !\"&'(),-.0123456789:;>?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]abcdefghijklmnopqrstuvwxyz}"

_LONGEST_HEADING = 40
_BEGINNING = re.compile(r"(?:ACT|PROLOGUE|INDUCTION)\b", re.IGNORECASE)
_SCENE = re.compile(r"(?:ACT|SCENE)\b.*", re.IGNORECASE)
# Headings of songs and of their parts are nobody's.
_NOBODY = re.compile(r"(?:SONG|EPILOGUE|PROLOGUE|INDUCTION|FINIS|THE END|[IVX]+)\.?", re.IGNORECASE)
_DIRECTION = re.compile(r"\[[^\[\]]*\]")
# Most plays have ROMEO. above what Romeo says, some have Romeo. or Rom. instead.
_CAPITALS = re.compile(r"[A-Z][A-Z'&, -]*(?: and [A-Z][A-Z', -]*)*\.?")
_CAPITALISED = re.compile(r"[A-Z][A-Za-z'-]*(?:[., ]+(?:[A-Z][A-Za-z'-]*|[0-9]|and|of|the|to))*\.")


def speeches(text: str) -> dict[str, str]:
    """Return what each role of a play says from beginning to end, by the name above its speeches, in capitals.

    Stage directions, and all before the first act, prologue or induction, are left out. A role whose name is written
    in two ways counts as two.
    """
    lines = [line.strip() for line in text.split("\n")]
    begin = next((place for place, line in enumerate(lines) if _BEGINNING.match(line)), 0)
    lines = lines[begin:]
    headings = _headings(lines)
    said: dict[str, list[str]] = {}
    role: str | None = None
    for place, line in enumerate(lines):
        if place in headings:
            role = headings[place]
        elif _SCENE.fullmatch(line):
            role = None
        elif role is not None and line and not _NOBODY.fullmatch(line):
            said.setdefault(role, []).append(line)
    whole = {role: _normalised("\n".join(parts)) for role, parts in said.items()}
    return {role: words for role, words in whole.items() if words}


def _headings(lines: list[str]) -> dict[int, str]:
    """Return the names that stand above speeches by line: in the one of two ways of writing that the play has most."""
    found: tuple[dict[int, str], dict[int, str]] = ({}, {})
    for place, line in enumerate(lines):
        # A name stands alone on its line, what is said right below it, and nothing right above.
        if not line or (place and lines[place - 1]) or not "".join(lines[place + 1 : place + 2]):
            continue
        name = _DIRECTION.sub("", line).strip()
        if len(name) > _LONGEST_HEADING or _SCENE.fullmatch(name) or _NOBODY.fullmatch(name):
            continue
        for pattern, names in zip((_CAPITALS, _CAPITALISED), found, strict=True):
            if pattern.fullmatch(name):
                names[place] = " ".join(name.removesuffix(".").upper().split()).strip(" ,")
    capitals, capitalised = found
    chosen = capitals if 2 * len(capitals) >= len(capitalised) else capitalised
    return {place: name for place, name in chosen.items() if name}


def _normalised(text: str) -> str:
    """Return what is said in the 80 characters: without stage directions, accents taken off, others left out."""
    without = re.sub(r"[ \t]+", " ", _DIRECTION.sub("", text))
    plain = unicodedata.normalize("NFKD", without.replace("\u2014", "--").replace("\u2019", "'"))
    lines = ("".join(letter for letter in line if letter in _KNOWN).strip() for line in plain.split("\n"))
    return "\n".join(line for line in lines if line)


_KNOWN = frozenset(ALPHABET)
