"""Stage directions of plays as Project Gutenberg has them: [Exit.], {Aside.], one in another, some never closed."""

from __future__ import annotations

import re

_PARAGRAPH = re.compile(r"^[^\S\n]*\S.*(?:\n[^\S\n]*\S.*)*", re.MULTILINE)
_LETTER = re.compile(r"[^\n]")
# Without a bracket; what is said may begin with "Enter", but not after a blank line.
_BARE = re.compile(r"\s*(?:Re-enter|Enter|Exit|Exeunt)\b")


def without_directions(text: str) -> str:
    """Return the text with spaces in place of stage directions and of brackets that are left over.

    A direction that is not closed ends with its paragraph if it begins one, and with its line if it does not. One that
    is closed twice ends at the second bracket if its paragraph begins with it. A paragraph that begins with "Enter" or
    "Exit" is a direction.
    """
    pieces, end = [], 0
    paragraphs = list(_PARAGRAPH.finditer(text))
    for number, paragraph in enumerate(paragraphs):
        start, stop = paragraph.span()
        if start < end:
            continue
        following = paragraphs[number + 1] if number + 1 < len(paragraphs) else None
        if following is not None and _goes_on(paragraph[0], following[0]):
            stop = following.end()
        pieces += [text[end:start], _blanked(text[start:stop])]
        end = stop
    return "".join([*pieces, text[end:]])


def _goes_on(paragraph: str, following: str) -> bool:
    """Say whether the one direction that is all of a paragraph is only closed at the end of the next one."""
    return (
        paragraph.lstrip()[0] in "[{"
        and not re.search(r"[\]}]", paragraph)
        and not re.search(r"[\[{]", following)
        and re.fullmatch(r"[^\]}]*[\]}]\s*", following) is not None
    )


def _blanked(paragraph: str) -> str:
    """Return a paragraph with spaces in place of its directions."""
    if _BARE.match(paragraph):
        return _LETTER.sub(" ", paragraph)
    first = len(paragraph) - len(paragraph.lstrip())
    opened: list[int] = []
    spans: list[tuple[int, int]] = []
    for place, letter in enumerate(paragraph):
        if letter in "[{":
            opened.append(place)
        elif letter in "]}" and opened:
            spans.append((opened.pop(), place + 1))
        elif letter in "]}":
            ends_line = not paragraph[place + 1 :].partition("\n")[0].strip()
            spans.append((first if paragraph[first] in "[{" and ends_line else place, place + 1))
    for place in opened:
        line_end = paragraph.find("\n", place)
        spans.append((place, len(paragraph) if place == first or line_end < 0 else line_end))
    pieces, end = [], 0
    for start, stop in sorted(spans):
        if stop > end:
            pieces += [paragraph[end:start], _LETTER.sub(" ", paragraph[max(start, end) : stop])]
            end = stop
    return "".join([*pieces, paragraph[end:]])
