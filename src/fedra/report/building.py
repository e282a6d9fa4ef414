"""A whole report, from results to files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from fedra.experiments import Results
from fedra.experiments.results import CELLS
from fedra.files import folder_inside, write_text
from fedra.report.figures import FIGURES, RUN_FIGURES, Drawing, require_matplotlib
from fedra.report.formats.csv import lines_csv, table_csv
from fedra.report.formats.latex import table_latex
from fedra.report.formats.markdown import run_markdown, summary_markdown, table_markdown
from fedra.report.model import Table
from fedra.report.model.comparison import Published, grid_tables
from fedra.report.model.one_run import OneRun, explanation, facts, is_run, read_run, rejection_text
from fedra.report.model.outcomes import ReportData, unique
from fedra.report.page import write_page, write_run_page
from fedra.report.reference import NO_REFERENCE, Reference
from fedra.untrusted import clipped

_FEW_GRIDS = 3

# What is being done, how far it is, and how far it goes.
Progress = Callable[[str, int, int], None]


class TableMaker(Protocol):
    """Makes tables of results; arguments as in `grid_tables`."""

    def __call__(self, data: ReportData, *, without: frozenset[str], published: Published) -> Iterable[Table]:
        """Return the tables, without grids that others have tables for."""
        ...


# To add tables: one function, and one line here.
TABLES: dict[str, TableMaker] = {"grids": grid_tables}


@dataclass(frozen=True, kw_only=True, eq=False)
class Report:
    """What was written, and what it says in short.

    Attributes:
        page: the HTML file.
        summary: all of it as Markdown.
        tables: the tables' files.
        figures: the figures' files.
        missing: figures of the extension for which there are no results.
        counts: how many runs ended how.
        notes: what the extension has to say, a line each.
        values: the same as plain values.
        compact: the folder of compact results, None where it was not asked for.
    """

    page: Path
    summary: Path
    tables: tuple[Path, ...]
    figures: tuple[Path, ...]
    missing: tuple[str, ...]
    counts: Mapping[str, int]
    notes: tuple[str, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    compact: Path | None = None


def build_report(
    source: Path | str,
    out: Path | str | None = None,
    *,
    title: str | None = None,
    figures: bool = True,
    compact: Path | str | None = None,
    added: bool = False,
    progress: Progress | None = None,
    reference: Reference = NO_REFERENCE,
) -> Report:
    """Write page, tables, summary and figures of a grid's folder, of compact results, or of one run's folder.

    Args:
        source: the folder.
        out: where to write; default: the folder `report` in it.
        title: of the page and the summary; default: made of what was run.
        figures: whether to draw them, which needs matplotlib.
        compact: a folder to write the compact results to.
        added: whether the results are added to those that are in `compact` already; the report is then of all.
        progress: called with what is being done, how far it is, and how far it goes.
        reference: published figures to compare with, and what goes with them.
    """
    source = Path(source)
    if figures:
        require_matplotlib()
    if is_run(source):
        if compact is not None:
            raise ValueError(f"compact results are those of a grid, and {source} is one run; leave --compact out")
        run = read_run(source)
        return write_run_report(run, _folder(source, out), title=title, figures=figures, reference=reference)
    report_step = progress or _silent
    results = Results.read(source, lambda done, of: report_step("reading runs", done, of))
    if results.cells.empty:
        raise ValueError(f"{source} has no cells; run fedra grid or fedra paper into it first")
    if added:
        if compact is None:
            raise ValueError("results are added to compact ones, and no folder of such is named; give --compact FOLDER")
        if (Path(compact) / CELLS).exists():
            results = results.added_to(Results.read(compact))
    if compact is not None:
        results.write(compact)
    data = ReportData.of(results)
    made = write_report(
        data, _folder(source, out), title=title, figures=figures, progress=progress, reference=reference
    )
    return made if compact is None else replace(made, compact=Path(compact))


def write_report(
    data: ReportData,
    folder: Path,
    *,
    title: str | None = None,
    figures: bool = True,
    progress: Progress | None = None,
    reference: Reference = NO_REFERENCE,
) -> Report:
    """Write the report of results that are read already; arguments as in `build_report`."""
    report_step = progress or _silent
    extension = reference.extension(data)
    data = replace(data, names=extension.names)
    title = title or extension.title or _title(data)
    tables = tuple(
        table
        for make in TABLES.values()
        for table in make(data, without=extension.grids, published=reference.published)
    )
    every = (*extension.tables, *tables)
    written = _write_all(folder_inside(folder, "tables"), _table_files(every, extension.files))
    drawings: list[Drawing] = []
    files: list[Path] = []
    missing = []
    if figures:
        place = folder_inside(folder, "figures")
        # At most one of curves for each table.
        most = len(extension.figures) + len(every)
        for name, figure in (*extension.figures.items(), *FIGURES.items()):
            before = len(drawings)
            for drawing in figure(data, every):
                files += drawing.write(place)
                drawings.append(drawing)
                report_step("drawing figures", len(drawings), max(most, len(drawings)))
            if name in extension.figures and len(drawings) == before:
                missing.append(name)
    report_step("writing the page", 0, 1)
    text = summary_markdown(
        data, extension, tables, title=title, source=reference.source, drawings=drawings, missing=missing
    )
    pictures = {
        drawing.caption: (folder / "figures" / f"{drawing.key}.svg").read_text(encoding="utf-8")
        for drawing in drawings
        if drawing.embedded
    }
    _write(folder / "summary.md", text)
    write_page(folder / "report.html", data, extension, tables, title=title, source=reference.source, pictures=pictures)
    report_step("writing the page", 1, 1)
    return Report(
        page=folder / "report.html",
        summary=folder / "summary.md",
        tables=tuple(written),
        figures=tuple(files),
        missing=tuple(missing),
        counts=data.counts,
        notes=extension.notes,
        values=extension.values,
    )


def write_run_report(
    run: OneRun, folder: Path, *, title: str | None = None, figures: bool = True, reference: Reference = NO_REFERENCE
) -> Report:
    """Write the report of one run; arguments as in `build_report`."""
    title = title or f"Run {run.outcome.run}"
    written = _write_all(folder_inside(folder, "tables"), _run_files(run))
    drawings, files = [], []
    if figures:
        place = folder_inside(folder, "figures")
        drawings = [drawing for figure in RUN_FIGURES.values() for drawing in figure(run)]
        files = [file for drawing in drawings for file in drawing.write(place)]
    text = f"{explanation(run)}\n\n{rejection_text(run)}"
    _write(folder / "summary.md", run_markdown(run, title=title, facts=facts(run), text=text, drawings=drawings))
    write_run_page(folder / "report.html", run, reference, title=title)
    return Report(
        page=folder / "report.html",
        summary=folder / "summary.md",
        tables=tuple(written),
        figures=tuple(files),
        missing=(),
        counts={run.outcome.status: 1},
    )


def _folder(source: Path, out: Path | str | None) -> Path:
    return folder_inside(source, "report") if out is None else folder_inside(Path(out))


def _title(data: ReportData) -> str:
    grids = unique(outcome.grid for outcome in data.outcomes)
    names = ", ".join(clipped(grid, 60) for grid in grids)
    return f"Results of {names if len(grids) <= _FEW_GRIDS else f'{len(grids)} grids'}"


def _table_files(tables: Sequence[Table], added: Mapping[str, str]) -> dict[str, str]:
    files = {"all.csv": table_csv(tables)}
    for table in tables:
        files[f"{table.key}.md"] = table_markdown(table)
        files[f"{table.key}.csv"] = table_csv([table])
        files[f"{table.key}.tex"] = table_latex(table)
    return {**files, **added}


def _run_files(run: OneRun) -> dict[str, str]:
    return {
        "result.csv": lines_csv(["what", "value"], facts(run)),
        "rounds.csv": run.rounds.to_csv(index=False, lineterminator="\n"),
        "clients.csv": run.rejected_clients.to_csv(index=False, lineterminator="\n"),
    }


def _write_all(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    files = []
    for name, text in texts.items():
        _write(folder / name, text)
        files.append(folder / name)
    return files


def _write(path: Path, text: str) -> None:
    # Half a surrogate pair, as a broken error message may have, must not cost the report.
    write_text(path, text, errors="replace")


def _silent(_what: str, _done: int, _of: int) -> None:
    pass
