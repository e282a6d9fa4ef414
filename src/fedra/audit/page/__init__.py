"""One self-contained page of an audit trail: what happened in all, then every client and every round."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from fedra.audit.page.columns import packed
from fedra.audit.reading import Trail
from fedra.audit.summary import ClientSummary, amount, name, summarise, what_is_missing
from fedra.pages import SCRIPTS, STYLES, assets, content_hash
from fedra.untrusted import clipped, encodable

_MOST_WARNINGS = 100
_MOST_NOTES = 100
_MOST_DROPPED = 10

_SCRIPTS = ("unpack.js", "timeline.js", "listing.js", "overview.js", "details.js", "page.js")
_POLICY = "default-src 'none'; script-src '{script}'; style-src '{style}'; base-uri 'none'; form-action 'none'"


def audit_page(trail: Trail, *, title: str, live: str | None = None) -> str:
    """Return the page as HTML; it refers to nothing outside itself.

    Args:
        trail: what to show.
        title: for people, such as the file's name.
        live: the version of the trail, where a server on this machine answers `version` with the latest one and the
            page is to follow it.
    """
    script = assets(__name__, _SCRIPTS, common=SCRIPTS)
    style = assets(__name__, ("audit.css",), common=STYLES)
    policy = _POLICY.format(script=content_hash(script), style=content_hash(style))
    if live is not None:
        policy += "; connect-src 'self'"
    summaries = summarise(trail)
    data, left_out = packed(trail, summaries)
    shown = escape(encodable(clipped(title)))
    version = "" if live is None else f'<meta name="fedra-version" content="{escape(live, quote=True)}">\n'
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
{version}<title>{shown}: audit trail</title>
<style>{style}</style>
</head>
<body>
<a class="skip" href="#clients">Skip to the clients</a>
<div id="page">
<header>
<h1>Audit trail: {shown}</h1>
<button type="button" id="theme" class="quiet" hidden></button>
</header>
<main>
<section id="summary" aria-label="Summary">
{_summary(trail, summaries, left_out)}
</section>
<noscript><p>Charts, the timeline of each client and the list of rounds need JavaScript.</p></noscript>
<section id="charts" class="charts" aria-label="Charts"></section>
<section id="clients" aria-label="Clients" tabindex="-1"></section>
<section id="rounds" aria-label="Rounds"></section>
</main>
</div>
<dialog id="details" aria-labelledby="details-title"></dialog>
<script type="text/plain" id="data">{data}</script>
<script type="module">{script}</script>
</body>
</html>
"""


def page_policy() -> str:
    """Return the Content-Security-Policy of a page that a server on this machine hands out."""
    script = assets(__name__, _SCRIPTS, common=SCRIPTS)
    style = assets(__name__, ("audit.css",), common=STYLES)
    policy = _POLICY.format(script=content_hash(script), style=content_hash(style))
    return f"{policy}; connect-src 'self'; frame-ancestors 'none'"


def _summary(trail: Trail, summaries: Sequence[ClientSummary], left_out: int) -> str:
    training = [line for line in trail.rounds if line["phase"] == "train"]
    noted = [line for line in trail.rounds if line["note"]]
    warned = [(line["round"], text) for line in training for text in line.get("warnings", ())]
    dropped = [each for each in summaries if each.dropped]
    gaps = sum(gap.count for gap in trail.gaps)
    replies = sum(each.replies for each in summaries)
    tiles = [
        (f"{len(training):,}", "training rounds", False),
        (f"{len(noted):,}", "rounds skipped", bool(noted)),
        (f"{gaps:,}", "rounds without a line", bool(gaps)),
        (f"{len(warned):,}", "warnings", bool(warned)),
        (f"{len(summaries):,}", "clients", False),
        (f"{len(dropped):,}", "clients dropped at least once", False),
        (f"{sum(each.dropped for each in summaries):,} of {replies:,}", "replies dropped", False),
    ]
    parts = [
        '<div class="tiles">'
        + "".join(
            f'<div class="tile{" failed" if bad else ""}"><b>{figure}</b> {text}</div>' for figure, text, bad in tiles
        )
        + "</div>"
    ]
    if not trail.rounds and not trail.clients:
        parts.append("<p>The trail is empty: no round has ended yet.</p>")
    missing = what_is_missing(trail)
    if left_out:
        missing.append(f"the first {left_out:,} replies are not on this page, but they are in the counts above")
    if missing:
        parts.append(f'<ul class="missing">{_items(missing)}</ul>')
    if dropped:
        parts.append(_most_dropped(dropped))
    parts.append(
        _folded("Warnings", len(warned), [f"round {at}: {clipped(text)}" for at, text in warned[-_MOST_WARNINGS:]])
    )
    notes = [f"round {r['round']} ({name(r['phase'])}): {clipped(r['note'])}" for r in noted[-_MOST_NOTES:]]
    parts.append(_folded("Skipped rounds", len(noted), notes))
    return "\n".join(part for part in parts if part)


def _most_dropped(dropped: Sequence[ClientSummary]) -> str:
    rows = "".join(
        f'<tr><th scope="row">{_text(name(each.client))}</th><td class="n">{each.dropped:,} of {each.replies:,}</td>'
        f'<td class="n wide">{amount(each.median_claim)}</td><td class="n wide">{amount(each.median_implied)}</td>'
        f"<td>{'<br>'.join(map(_text, each.why(2)))}</td></tr>\n"
        for each in dropped[:_MOST_DROPPED]
    )
    return f"""<h2>Dropped most</h2>
<div class="scroll" tabindex="0" role="region" aria-label="Clients that were dropped most"><table class="text">
<thead><tr><th scope="col">client</th><th scope="col" class="n">dropped</th>
<th scope="col" class="n wide">median claim</th>
<th scope="col" class="n wide">implied</th><th scope="col">why</th></tr></thead>
<tbody>
{rows}</tbody>
</table></div>"""


def _folded(title: str, count: int, lines: Sequence[str]) -> str:
    """Return a list that opens, the latest line first."""
    if not count:
        return ""
    which = "" if count == len(lines) else f", the latest {len(lines):,}"
    return f"<details><summary>{title}: {count:,}{which}</summary><ul>{_items(reversed(lines))}</ul></details>"


def _items(lines: Iterable[str]) -> str:
    return "".join(f"<li>{_text(line)}</li>" for line in lines)


def _text(text: str) -> str:
    return escape(encodable(text))
