"""One self-contained page of an assessment: the recommendation first, then what it rests on."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from fedra.assess.assessment import Assessment, RuleFindings
from fedra.assess.tables import Table, tables
from fedra.assess.text import headline
from fedra.assess.wording import percent
from fedra.pages import SCRIPTS, STYLES, assets, content_hash, embedded_json
from fedra.untrusted import clipped, encodable

_SCRIPT, _STYLE = ("assess.js",), ("assess.css",)
_POLICY = "default-src 'none'; script-src '{script}'; style-src '{style}'; base-uri 'none'; form-action 'none'"
# A line differs from the others in colour and in dashes.
_COLOURS = ("#1f6f50", "#c0392b", "#2c6fbb", "#b8860b", "#7b3fa0", "#00838f", "#8d5524", "#5f6b2d")
_DASHES = ("", "7 3", "2 3", "9 3 2 3", "5 2 1 2 1 2")
# Long, and for those who want to look into the search.
_FOLDED = ("worst",)


def assessment_page(assessment: Assessment, *, title: str = "Is this federation exposed?") -> str:
    """Return the page as HTML; it refers to nothing outside itself."""
    script = assets(__name__, _SCRIPT, common=SCRIPTS)
    style = assets(__name__, _STYLE, common=STYLES)
    policy = _POLICY.format(script=content_hash(script), style=content_hash(style))
    shown = _text(clipped(title))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{shown}</title>
<style>{style}</style>
</head>
<body>
<a class="skip" href="#findings">Skip to the findings</a>
<div id="page">
<header>
<h1>{shown}</h1>
<button type="button" id="theme" class="quiet" hidden></button>
</header>
<main>
<p class="caption">{_text(headline(assessment))}</p>
<div class="tiles">{_tiles(assessment)}</div>
{_advice(assessment)}
<div id="findings" tabindex="-1">
{"".join(map(_section, tables(assessment)))}
</div>
<section id="assumptions">
<h2>Assumptions</h2>
<ul>{_items(assessment.assumptions)}</ul>
</section>
</main>
</div>
<script type="application/json" id="data">{embedded_json(_data(assessment))}</script>
<script type="module">{script}</script>
</body>
</html>
"""


def _tiles(assessment: Assessment) -> str:
    federation, colluders, advice = assessment.federation, assessment.colluders, assessment.advice
    plain = next((each for each in assessment.rules if each.rule == "fedavg" and each.liar is not None), None)
    tiles = [
        (f"{federation.num_clients:,}", "clients", False),
        (f"{federation.num_sampled:,}", "in a round", False),
        (f"{federation.num_malicious:,}", "taken to lie", False),
        (f"{colluders.most:,}", f"colluder{'' if colluders.most == 1 else 's'} a round may hold", False),
    ]
    if plain is not None and plain.liar is not None:
        share = plain.liar.best.share
        tiles.append((percent(share), "of the result for one liar under FedAvg", share > 0.5))
    if advice.rule is not None:
        best = next(each for each in assessment.rules if each.label == advice.rule)
        stands = 0 if best.outlook is None else best.outlook.stands
        tiles.append((f"{stands:,}", f"attackers stood by {_text(advice.rule)}", not advice.enough))
    return "".join(
        f'<div class="tile{" failed" if bad else ""}"><b>{figure}</b> {words}</div>' for figure, words, bad in tiles
    )


def _advice(assessment: Assessment) -> str:
    advice = assessment.advice
    kind = "" if advice.enough else " weak"
    return f"""<section id="advice" class="advice{kind}" aria-labelledby="advice-title">
<h2 id="advice-title">{_text(advice.headline)}</h2>
<ul>{_items(advice.reasons)}</ul>
<h3>The others</h3>
<ul>{_items(advice.others)}</ul>
</section>"""


def _section(table: Table) -> str:
    heads = "".join(
        f'<th scope="col"{_kind(table, place)}>{_text(head)}</th>' for place, head in enumerate(table.headings)
    )
    rows = "\n".join(
        f'<tr><th scope="row">{_text(row[0])}</th>'
        + "".join(f"<td{_kind(table, place)}>{_text(cell)}</td>" for place, cell in enumerate(row[1:], start=1))
        + "</tr>"
        for row in table.rows
    )
    drawn = '<div id="worst-chart"></div>' if table.key == "worst" else ""
    shown = f"""<div class="scroll" tabindex="0" role="region" aria-label="{_text(table.title)}"><table class="text">
<thead><tr>{heads}</tr></thead>
<tbody>
{rows}
</tbody>
</table></div>"""
    if table.key in _FOLDED:
        shown = f"<details><summary>All that was found</summary>{shown}</details>"
    return f"""<section id="{table.key}">
<h2>{_text(table.title)}</h2>
<p class="caption">{_text(table.caption)}</p>
{drawn}{shown}
</section>
"""


def _kind(table: Table, place: int) -> str:
    """Return the class of a column of figures, which end at the right."""
    words = place == 0 or table.headings[place] in ("condition", "direction", "outcome")
    return "" if words else ' class="n"'


def _data(assessment: Assessment) -> dict[str, object]:
    lines = [_line(place, each) for place, each in enumerate(assessment.rules) if each.standing is not None]
    return {"lines": lines}


def _line(place: int, each: RuleFindings) -> dict[str, object]:
    assert each.standing is not None
    return {
        "name": encodable(clipped(each.label, 60)),
        "colour": _COLOURS[place % len(_COLOURS)],
        "dash": _DASHES[place % len(_DASHES)],
        "rounds": [found.attackers for found in each.standing.found],
        "values": [found.cosine for found in each.standing.found],
    }


def _items(sentences: Iterable[str]) -> str:
    return "".join(f"<li>{_text(sentence)}</li>" for sentence in sentences)


def _text(text: str) -> str:
    return escape(encodable(text), quote=True)
