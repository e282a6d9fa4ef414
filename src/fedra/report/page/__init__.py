"""The report as one HTML file that refers to nothing outside itself."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from fedra.files import write_text
from fedra.pages import SCRIPTS, STYLES, assets, content_hash, embedded_json
from fedra.report.model import Table
from fedra.report.model.one_run import OneRun
from fedra.report.model.outcomes import ReportData
from fedra.report.page.embedded import page_data
from fedra.report.page.one_run import run_context, run_data
from fedra.report.page.views import contents, overview, table_view
from fedra.report.reference import Extension, Reference

_STYLES = ("page.css", "panel.css")


def write_page(
    path: Path,
    data: ReportData,
    extension: Extension,
    tables: Sequence[Table],
    *,
    title: str,
    source: str = "",
    pictures: Mapping[str, str] | None = None,
) -> None:
    """Write the page of results.

    Args:
        path: the file.
        data: what the tables were made from; the page takes curves, scores and configurations from it.
        extension: what somebody else adds.
        tables: the report's own.
        title: for people.
        source: who published the figures to compare with.
        pictures: figures to show, as SVG by caption.
    """
    every = (*extension.tables, *tables)
    views = [table_view(table, number) for number, table in enumerate(every)]
    _write(
        path,
        "report.html",
        ("parts.js", "panel.js", "page.js"),
        page_data(data, every),
        title=title,
        overview=overview(data),
        compared=any(table.compared for table in every),
        source=source,
        contents=contents(every, data),
        heading=extension.heading,
        published_tables=views[: len(extension.tables)],
        sections=extension.sections,
        tables=views[len(extension.tables) :],
        pictures=[{"caption": caption, "data": _base64(svg)} for caption, svg in (pictures or {}).items()],
    )


def write_run_page(path: Path, run: OneRun, reference: Reference, *, title: str) -> None:
    """Write the page of one run."""
    published = reference.published(run.outcome)
    _write(
        path,
        "run.html",
        ("parts.js", "run.js"),
        run_data(run, published),
        title=title,
        published=published is not None,
        source=reference.source,
        **run_context(run),
    )


def _write(path: Path, template: str, scripts: Sequence[str], data: Any, **context: Any) -> None:
    # Our own files, and JSON in which no tag can end: all that is not escaped.
    script = Markup(assets(__name__, scripts, common=SCRIPTS))
    style = Markup(assets(__name__, _STYLES, common=STYLES))
    page = (
        _templates()
        .get_template(template)
        .render(
            **context,
            script=script,
            style=style,
            script_hash=content_hash(script),
            style_hash=content_hash(style),
            data=Markup(embedded_json(data)),
        )
    )
    # A text with half a surrogate pair, as a broken error message may have, must not cost the whole report.
    write_text(path, page, errors="replace")


@cache
def _templates() -> Environment:
    return Environment(
        loader=PackageLoader("fedra.report.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
