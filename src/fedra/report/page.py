"""The report as one HTML file that refers to nothing outside itself."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from fedra.experiments import Results
from fedra.files import write_text
from fedra.report.model import Table
from fedra.report.page_contents import contents_html
from fedra.report.page_data import embedded_json, page_data
from fedra.report.page_overview import overview_html, statistics_html, winners_html
from fedra.report.page_tables import is_compared, table_html
from fedra.report.winners import Winner

_SCRIPTS = ("svg.js", "charts.js", "panel.js", "page.js")
_STYLES = ("page.css", "panel.css")


def write_page(
    path: Path | str,
    results: Results,
    tables: Sequence[Table],
    *,
    title: str,
    studies: Sequence[Table] = (),
    winners: Sequence[Winner] = (),
    figures: Mapping[str, str] | None = None,
) -> None:
    """Write the page.

    Args:
        path: the file.
        results: what the tables were made from; the page takes curves, scores and configurations from it.
        tables: those of the paper, ours beside the published figures.
        title: for people.
        studies: further tables, without published figures.
        winners: who is best in each column, in the paper and here.
        figures: pictures to show, as SVG by caption.
    """
    cells = results.cells
    status = dict(zip(cells["run"], cells["status"].fillna("missing"), strict=True))
    shown = [table_html(table, at, status) for at, table in enumerate((*tables, *studies))]
    compared = any(map(is_compared, (*tables, *studies)))
    script, style = _assets(_SCRIPTS), _assets(_STYLES)
    page = Template(_asset("page.html")).substitute(
        title=escape(title),
        script=script,
        style=style,
        script_hash=_hash(script),
        style_hash=_hash(style),
        contents=contents_html((*tables, *studies)),
        overview=overview_html(cells),
        bar=_asset("bar.html") if compared else "",
        tables=_section("tables", "The paper's tables", shown[: len(tables)]),
        winners=winners_html(winners),
        studies=_section("studies", "Further comparisons", shown[len(tables) :]),
        figures=_section("figures", "Figures", [_picture(*figure) for figure in (figures or {}).items()]),
        statistics=statistics_html(results),
        data=embedded_json(page_data(results, (*tables, *studies))),
    )
    # A text with half a surrogate pair, as a broken error message may have, must not cost the whole report.
    write_text(Path(path), page, errors="replace")


def _asset(name: str) -> str:
    return files("fedra.report").joinpath("assets").joinpath(name).read_text(encoding="utf-8")


def _assets(names: Sequence[str]) -> str:
    return "\n" + "\n".join(map(_asset, names))


def _hash(text: str) -> str:
    """Return what a Content-Security-Policy names an inline script or style by."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _section(key: str, title: str, parts: Sequence[str]) -> str:
    return f'<section id="{key}"><h2>{title}</h2>\n{"".join(parts)}</section>' if parts else ""


def _picture(caption: str, svg: str) -> str:
    data = base64.b64encode(svg.encode()).decode()
    said = escape(caption, quote=True)
    return f'<figure><img alt="{said}" src="data:image/svg+xml;base64,{data}"><figcaption>{said}</figcaption></figure>'
