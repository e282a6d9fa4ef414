"""An assessment as text, for terminals of any width."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from fedra.assess.assessment import Assessment
from fedra.assess.tables import Table, tables
from fedra.assess.wording import clients
from fedra.cohort import number_text
from fedra.untrusted import one_line

NARROWEST, WIDEST = 40, 120
_GAP = 2


def assessment_text(assessment: Assessment, width: int = 80) -> str:
    """Return the whole page as text whose lines are at most `width` wide; the recommendation comes first."""
    width = max(NARROWEST, min(width, WIDEST))
    advice = assessment.advice
    parts = [
        _wrapped(headline(assessment), width),
        _section("Recommendation", width),
        _wrapped(one_line(advice.headline), width),
        *(_item(sentence, width) for sentence in (*advice.reasons, *advice.others)),
    ]
    for table in tables(assessment):
        parts += [_section(table.title, width), _laid_out(table, width), _wrapped(table.caption, width)]
    parts.append(_section("Assumptions", width))
    parts += [_item(sentence, width) for sentence in assessment.assumptions]
    return "\n".join(parts)


def headline(assessment: Assessment) -> str:
    """Return the federation in one sentence."""
    federation = assessment.federation
    total = number_text(float(federation.quantities.sum()))
    largest = 100 * float(federation.quantities.max() / federation.quantities.sum())
    share = "less than 0.1" if largest < 0.1 else f"{largest:.3g}"
    sampled = "all" if federation.everybody else f"{federation.num_sampled:,}"
    return (
        f"{clients(federation.num_clients)} with {total} samples, the largest with {share}% of them; {sampled} in "
        f"each of "
        f"{federation.rounds:,} rounds; {federation.num_malicious:,} taken to lie."
    )


def _section(title: str, width: int) -> str:
    return f"\n{title}\n{'-' * min(len(title), width)}"


def _wrapped(text: str, width: int, *, first: str = "", rest: str = "") -> str:
    return textwrap.fill(one_line(text), width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)


def _item(text: str, width: int) -> str:
    return _wrapped(text, width, first="- ", rest="  ")


def _laid_out(table: Table, width: int) -> str:
    """Return the table in columns under headings of several lines; where even that is too wide, in blocks."""
    cells = [tuple(map(one_line, row)) for row in table.rows]
    least = [
        max([*(len(row[place]) for row in cells), *(len(word) for word in heading.split())])
        for place, heading in enumerate(table.headings)
    ]
    room = width - _GAP * (len(least) - 1) - sum(least)
    if room < 0:
        return _in_blocks(table.headings, cells, width)
    widths = list(least)
    for place, heading in enumerate(table.headings):
        more = min(room, max(0, len(heading) - widths[place]))
        widths[place] += more
        room -= more
    wrapped = [textwrap.wrap(heading, size) for heading, size in zip(table.headings, widths, strict=True)]
    height = max(map(len, wrapped))
    heads = [[*[""] * (height - len(lines)), *lines] for lines in wrapped]
    words = [_is_words(cells, place) for place in range(len(widths))]
    lines = [
        *(_line([head[level] for head in heads], widths, words) for level in range(height)),
        _line(["-" * size for size in widths], widths, words),
        *(_line(row, widths, words) for row in cells),
    ]
    return "\n".join(lines)


def _is_words(cells: Sequence[tuple[str, ...]], place: int) -> bool:
    """Whether a column is of words, which begin at the left; figures end at the right."""
    return place == 0 or any(
        " " in row[place] or (row[place][:1].isalpha() and row[place] != "refused") for row in cells
    )


def _line(cells: Sequence[str], widths: Sequence[int], words: Sequence[bool]) -> str:
    placed = [
        cell.ljust(size) if word else cell.rjust(size) for cell, size, word in zip(cells, widths, words, strict=True)
    ]
    return (" " * _GAP).join(placed).rstrip()


def _in_blocks(headings: Sequence[str], cells: Sequence[tuple[str, ...]], width: int) -> str:
    lines: list[str] = []
    before = ""
    for row in cells:
        if row[0] != before:
            lines.append(_wrapped(row[0], width))
        before = row[0]
        stated = [
            f"{heading} {cell}" for heading, cell in zip(headings[1:], row[1:], strict=True) if cell not in ("", "-")
        ]
        lines.append(_wrapped("; ".join(stated), width, first="  ", rest="    "))
    return "\n".join(lines)
