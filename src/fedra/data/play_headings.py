"""Where plays name who speaks: above a speech or before it, as printed, and as printed by mistake."""

from __future__ import annotations

import re
from typing import NamedTuple

_LONGEST_NAME = 40
_NUMBER = r"(?:[IVXL]+|[0-9]+|FIRST|SECOND|THIRD|FOURTH|FIFTH)\b"
_BEGINNING = re.compile(rf"(?:ACT|Act)\s+{_NUMBER}.*|(?:THE )?PROLOGUE\.?|INDUCTION\.?")
# What stands below these has no speaker until there is a name. A spoken line may begin with "act" or "scene".
_SCENE = re.compile(rf"(?:ACT|Act|SCENE|Scene)\s+{_NUMBER}.*|INDUCTION\.?|THE END\.?|FINIS\.?|THE ORDER OF [A-Z ]+\.?")
# These are roles where there is no other name before the first word.
_CHORUS = re.compile(r"(?:THE )?(PROLOGUE|EPILOGUE)\.?")
# Who enters alone after a scene's heading, and is not named again, speaks.
_ENTERS = re.compile(r"\[Enter ([A-Za-z' ]+?)\.?\]")
_SPOKEN_BY = re.compile(r"\[?Spoken by (?:an? |the )?([A-Za-z ]+?)\.?\]?")
# Songs, and their parts, are sung by who spoke before.
_SONG = re.compile(r"(?:SONG|Song)\.?")
_VERSE = re.compile(r"[IVX]+\.")
# Most plays have ROMEO. above what Romeo says, some have Romeo. or Rom. instead.
_COUNT = r"(?:[0-9]\.? )?"
_CAPITALS = re.compile(rf"{_COUNT}[A-Z][A-Z'&,. -]*(?: and [A-Z][A-Z',. -]*)*(?:&c)?\.?")
_CAPITALISED = re.compile(rf"{_COUNT}[A-Z][A-Za-z'-]*(?:[., ]+(?:[A-Z][A-Za-z'-]*|[0-9]|and|of|the|to))*\.")
_WORD = re.compile(r"[^\W_]")
_AFTER_NAME = re.compile(r"\.(?:--|\s)\s*")


class Heading(NamedTuple):
    """Who speaks from a line on, None for nobody, and what stands on the same line."""

    role: str | None
    said: str = ""


class Headings(NamedTuple):
    """Lines that are not only spoken: names and scenes by their places, and titles, at which the speaker goes on."""

    names: dict[int, Heading]
    titles: frozenset[int]


def beginning(lines: list[str]) -> int:
    """Return the place of the first act, prologue or induction, or 0."""
    return next((place for place, line in enumerate(lines) if _BEGINNING.fullmatch(line.strip())), 0)


def find_headings(printed: list[str], lines: list[str]) -> Headings:
    """Return the headings among lines as they are printed and, without stage directions, spoken.

    A name is known when it once stands above a speech in the way of writing that the play has most: blank above,
    speech or direction right below. A name that is known also counts where a blank line is missing or too many, where
    the speech begins on the same line, and where it is in other letters.
    """
    play = _Play(printed, lines)
    names: dict[int, Heading] = {}
    titles = set()
    role: str | None = None
    for place, line in enumerate(play.spoken):
        heading = play.heading(place) or (play.enters(place) if role is None else None)
        if heading:
            names[place] = heading
            role = heading.role
        elif play.is_title(place, line, below_name=place - 1 in names or place - 1 in titles):
            titles.add(place)
    return Headings(names, frozenset(titles))


class _Play:
    def __init__(self, printed: list[str], lines: list[str]) -> None:
        self.printed = printed
        self.spoken = [line.strip() for line in lines]
        above = [place for place in range(len(lines)) if self.stands_above(place)]
        found = [
            {place for place in above if pattern.fullmatch(self.spoken[place])} for pattern in (_CAPITALS, _CAPITALISED)
        ]
        self.capitals = 2 * len(found[0]) >= len(found[1])
        self.certain = found[0] if self.capitals else found[1]
        self.known = {_name(self.spoken[place]) for place in self.certain}

    def heading(self, place: int) -> Heading | None:
        line = self.spoken[place]
        if speaker := _SPOKEN_BY.fullmatch(self.printed[place].strip()):
            return Heading(speaker[1].upper())
        if _SCENE.fullmatch(line):
            return Heading(None)
        if place in self.certain:
            return Heading(_name(line))
        if (chorus := _CHORUS.fullmatch(line)) and self.blank(place - 1):
            return Heading(chorus[1])
        # Within a paragraph a name is no signature, and not somebody who is spoken to.
        inside = self.capitals and not self.printed[place][:1].isspace()
        if not (self.blank(place - 1) or inside):
            return None
        name = _name(line)
        if name in self.known and self.blank(place - 1) and (line.endswith(".") or self.has_text(place + 1)):
            return Heading(name)
        if name in self.known and line.isupper() and line.endswith("."):
            return Heading(name)
        return self.name_and_speech(line, alone=self.blank(place - 1))

    def name_and_speech(self, line: str, *, alone: bool) -> Heading | None:
        """Return the name before a speech on the same line; in capitals, below a blank line, it may be a new one."""
        for after in reversed(list(_AFTER_NAME.finditer(line, 0, _LONGEST_NAME))):
            name, said = line[: after.start()], line[after.end() :]
            new = self.capitals and alone and len(name) > 2 and _CAPITALS.fullmatch(name)
            if said and (new or name.upper() in self.known) and (not self.capitals or name.isupper()):
                return Heading(_name(name), said)
        return None

    def enters(self, place: int) -> Heading | None:
        found = _ENTERS.fullmatch(self.printed[place].strip())
        return Heading(found[1].upper()) if found and found[1].upper() in self.known else None

    def is_title(self, place: int, line: str, *, below_name: bool) -> bool:
        if _SONG.fullmatch(line):
            return True
        above = self.blank(place - 1)
        if _VERSE.fullmatch(line):
            return (above or below_name) and self.has_text(place + 1)
        alone = above and self.blank(place + 1) and 2 < len(line) <= _LONGEST_NAME
        return self.capitals and alone and bool(_CAPITALS.fullmatch(line))

    def stands_above(self, place: int) -> bool:
        line = self.spoken[place]
        return (
            len(line) <= _LONGEST_NAME
            and self.blank(place - 1)
            and self.has_text(place + 1)
            and bool(_name(line))
            and not any(pattern.fullmatch(line) for pattern in (_SCENE, _CHORUS, _SONG, _VERSE))
        )

    def blank(self, place: int) -> bool:
        """Say whether nothing is said in a line: it is not there, empty, or only a direction, title or decoration."""
        if not 0 <= place < len(self.spoken):
            return True
        line = self.spoken[place]
        return not _WORD.search(line) or bool(_SONG.fullmatch(line) or _VERSE.fullmatch(line))

    def has_text(self, place: int) -> bool:
        return place < len(self.printed) and bool(self.printed[place].strip())


def _name(line: str) -> str:
    return " ".join(line.removesuffix("--").removesuffix(".").upper().split()).strip(" ,")
