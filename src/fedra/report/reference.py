"""Published figures to compare with, and what else another package may add to a report: a neutral hook."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fedra.report.appearance import DISPLAY_NAMES, Names
from fedra.report.figures import Figure
from fedra.report.model import Table
from fedra.report.model.comparison import Published, nothing_published
from fedra.report.model.outcomes import Outcome, ReportData


@dataclass(frozen=True, kw_only=True)
class TextTable:
    """A table of texts; columns in `numbers` are set to the right.

    Attributes:
        label: what it is, for those who do not see it.
        heading: under which it can be folded away; empty: it always shows.
        folded: whether it is folded away at first.
        caption: what its figures are.
    """

    label: str
    heads: Sequence[str]
    lines: Sequence[Sequence[str]]
    numbers: frozenset[int] = frozenset()
    heading: str = ""
    folded: bool = False
    caption: str = ""


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of the report with a heading: tables of texts for the page, and the same as Markdown for the summary.

    `first`: whether it stands before the tables of its extension, not after them.
    """

    key: str
    title: str
    caption: str
    tables: tuple[TextTable, ...]
    markdown: str
    first: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Extension:
    """What is added to one report; without any argument nothing is.

    Attributes:
        title: of the report, None for the report's own.
        names: what things are called in this report.
        grids: those that its tables show.
        heading: above its tables.
        tables: they come before the report's own.
        sections: they come after its tables, or before them.
        figures: by name; a name for which nothing is drawn is reported as missing.
        files: texts by file name, beside the tables' files.
        notes: lines for the terminal.
        values: what the notes say, as plain values by name.
    """

    title: str | None = None
    names: Names = field(default_factory=lambda: DISPLAY_NAMES)
    grids: frozenset[str] = frozenset()
    heading: str = ""
    tables: tuple[Table, ...] = ()
    sections: tuple[Section, ...] = ()
    figures: Mapping[str, Figure] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)


def _nothing(_data: ReportData) -> Extension:
    return Extension()


@dataclass(frozen=True, kw_only=True, eq=False)
class Reference:
    """Figures that somebody published, to compare with; without any argument there are none.

    Attributes:
        source: who published them.
        published: the published figure of an outcome, None where its run is not like the published ones.
        extension: called with the results, what else to add to their report.
    """

    source: str = ""
    published: Published = nothing_published
    extension: Callable[[ReportData], Extension] = _nothing


NO_REFERENCE = Reference()


def combined(*references: Reference) -> Reference:
    """Return several references as one; a grid that one has tables for is not seen by those after it."""

    def published(outcome: Outcome) -> float | None:
        figures = (reference.published(outcome) for reference in references)
        return next((figure for figure in figures if figure is not None), None)

    def extension(data: ReportData) -> Extension:
        found: list[Extension] = []
        for reference in references:
            taken = frozenset[str]().union(*(other.grids for other in found))
            left = tuple(outcome for outcome in data.outcomes if outcome.grid not in taken)
            found.append(reference.extension(replace(data, outcomes=left)))
        used = [one for one in found if one.grids or one.tables]
        return Extension(
            title=next((one.title for one in used if one.title), None),
            names={name: text for one in (Extension(), *reversed(used)) for name, text in one.names.items()},
            grids=frozenset[str]().union(*(one.grids for one in used)),
            heading=", ".join(one.heading for one in used),
            tables=tuple(table for one in used for table in one.tables),
            sections=tuple(section for one in used for section in one.sections),
            figures={name: figure for one in used for name, figure in one.figures.items()},
            files={name: text for one in used for name, text in one.files.items()},
            notes=tuple(note for one in used for note in one.notes),
            values={name: value for one in used for name, value in one.values.items()},
        )

    sources = "; ".join(reference.source for reference in references if reference.source)
    return Reference(source=sources, published=published, extension=extension)
