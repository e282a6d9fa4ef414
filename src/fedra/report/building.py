"""A whole report, from results to files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from fedra.experiments import Results
from fedra.files import folder_inside, write_text
from fedra.report.drawing import Drawing, require_matplotlib
from fedra.report.figures import missing_figures, paper_drawings, table_drawings
from fedra.report.model import Table
from fedra.report.page import write_page
from fedra.report.runs import Runs
from fedra.report.summary import summary_markdown
from fedra.report.tables import paper_tables, study_tables
from fedra.report.text import table_csv, table_latex, table_markdown, winners_csv
from fedra.report.winners import Agreement, Winner, agreements, winners

TITLE = "Robust quantity-aware aggregation: results beside the paper's"

# What is being done, how far it is, and how far it goes.
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, kw_only=True, eq=False)
class Report:
    """What was written, and what it says in short.

    Attributes:
        page: the HTML file.
        summary: all tables as Markdown.
        tables: the tables' files.
        figures: the figures' files.
        missing: the paper's figures for which there are no results.
        counts: how many runs ended how.
        agreement: in how many columns the winner is the published one, by table.
        compact: the folder of compact results, None where it was not asked for.
    """

    page: Path
    summary: Path
    tables: tuple[Path, ...]
    figures: tuple[Path, ...]
    missing: tuple[str, ...]
    counts: dict[str, int]
    agreement: tuple[Agreement, ...]
    compact: Path | None


def build_report(
    source: Path | str,
    out: Path | str | None = None,
    *,
    title: str = TITLE,
    figures: bool = True,
    compact: Path | str | None = None,
    progress: Progress | None = None,
) -> Report:
    """Write page, tables, summary and figures of a grid's folder or of compact results.

    Args:
        source: the folder.
        out: where to write; default: the folder `report` in it.
        title: of the page and the summary.
        figures: whether to draw them, which needs matplotlib.
        compact: a folder to write the compact results to.
        progress: called with what is being done, how far it is, and how far it goes.
    """
    if figures:
        require_matplotlib()
    tell = progress or (lambda _what, _done, _of: None)
    results = Results.read(source, lambda done, of: tell("reading runs", done, of))
    if results.cells.empty:
        raise ValueError(f"{source} has no cells; run fedra grid or fedra paper into it first")
    if compact is not None:
        results.write(compact)
    tables, studies, runs = paper_tables(results), study_tables(results), Runs(results=results)
    found = winners(tables)
    folder = folder_inside(Path(source), "report") if out is None else folder_inside(Path(out))
    written = _write_tables(folder_inside(folder, "tables"), (*tables, *studies), runs, found)
    drawings, files = _draw(folder_inside(folder, "figures"), results, tables, studies, tell) if figures else ([], [])
    missing = missing_figures(drawings) if figures else ()
    summary = folder / "summary.md"
    text = summary_markdown(
        results, runs, title=title, tables=tables, studies=studies, winners=found, drawings=drawings, missing=missing
    )
    _write(summary, text)
    page = folder / "report.html"
    tell("writing the page", 0, 1)
    pictures = {
        drawing.caption: (folder / "figures" / f"{drawing.key}.svg").read_text(encoding="utf-8")
        for drawing in drawings
        if not drawing.key.startswith("curves-")
    }
    write_page(page, results, tables, title=title, studies=studies, winners=found, figures=pictures)
    tell("writing the page", 1, 1)
    return Report(
        page=page,
        summary=summary,
        tables=tuple(written),
        figures=tuple(files),
        missing=missing,
        counts=runs.counts(),
        agreement=agreements(found),
        compact=None if compact is None else Path(compact),
    )


def _write_tables(folder: Path, tables: Sequence[Table], runs: Runs, found: Sequence[Winner]) -> list[Path]:
    files = {folder / "all.csv": table_csv(tables, runs)}
    for table in tables:
        files[folder / f"{table.key}.md"] = table_markdown(table, runs)
        files[folder / f"{table.key}.csv"] = table_csv([table], runs)
        files[folder / f"{table.key}.tex"] = table_latex(table, runs)
    if found:
        files[folder / "winners.csv"] = winners_csv(found)
    for file, text in files.items():
        _write(file, text)
    return list(files)


def _draw(
    folder: Path, results: Results, tables: Sequence[Table], studies: Sequence[Table], tell: Progress
) -> tuple[list[Drawing], list[Path]]:
    drawings: list[Drawing] = []
    files: list[Path] = []
    # The paper's five figures, and at most one of curves for each table.
    most = 5 + len(tables) + len(studies)
    for drawing in chain(paper_drawings(results), table_drawings(results, (*tables, *studies))):
        files += drawing.write(folder)
        drawings.append(drawing)
        tell("drawing figures", len(drawings), most)
    return drawings, files


def _write(path: Path, text: str) -> None:
    # Half a surrogate pair, as a broken error message may have, must not cost the report.
    write_text(path, text, errors="replace")
