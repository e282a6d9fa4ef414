"""One self-contained page of an audit trail: a timeline for each client."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from fedra.audit.reading import Trail
from fedra.audit.summary import ClientSummary, name, summarise
from fedra.untrusted import clipped, encodable

_MOST_COLUMNS = 2000
# One for each client and round: more of them no browser shows.
_MOST_MARKS = 2_000_000
_MOST_WARNINGS = 100

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --kept: #2e7d5b; --out: #c0392b; --bad: #8e24aa; --none: #8882; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; margin: 0 0 .3rem; } h2 { font-size: 1.05rem; margin: 2rem 0 .5rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
th.n, td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.line { display: flex; gap: 1px; min-width: 12rem; }
.line i { flex: 1 0 4px; max-width: 14px; height: 18px; border-radius: 2px; background: var(--none); }
.line .kept, .key .kept { background: var(--kept); } .line .out, .key .out { background: var(--out); }
.line .bad, .key .bad { background: var(--bad); } .key .none { background: var(--none); }
.key i { display: inline-block; width: 12px; height: 12px; border-radius: 2px; margin: 0 .3rem 0 1rem; }
.why { min-width: 18rem; max-width: 28rem; overflow-wrap: anywhere; }
"""

_KEY = (
    '<p class="key"><i class="kept"></i>kept<i class="out"></i>dropped by the rule<i class="bad"></i>unusable reply'
    '<i class="none"></i>no reply, or round skipped</p>'
)


def audit_page(trail: Trail, *, title: str) -> str:
    """Return the page as HTML; it refers to nothing outside itself."""
    rounds = [r for r in trail.rounds if r["phase"] == "train"][-_MOST_COLUMNS:]
    skipped = [r for r in trail.rounds if r["note"]]
    records = {(str(c["run"]), c["round"], str(c["client"])): c for c in trail.clients if c["phase"] == "train"}
    summaries = summarise(trail)
    visible = summaries[: _MOST_MARKS // max(1, len(rounds))]
    timelines = "\n".join(_client_row(summary, rounds, records) for summary in visible)
    left_out = (
        f"<p>{len(summaries) - len(visible):,} more clients are not shown.</p>" if len(visible) < len(summaries) else ""
    )
    notes = "".join(
        f"<li>round {r['round']} ({escape(name(r['phase']))}): {escape(clipped(r['note']))}</li>" for r in skipped
    )
    warned = [(r["round"], clipped(text)) for r in rounds for text in r.get("warnings", ())]
    warnings = "".join(f"<li>round {number}: {escape(text)}</li>" for number, text in warned[-_MOST_WARNINGS:][::-1])
    title = encodable(clipped(title))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}: audit trail</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>Audit trail: {escape(title)}</h1>
<p>{len(rounds)} training rounds, {len(skipped)} rounds skipped, {trail.unreadable} unreadable lines,
{trail.lost} lines missing because the disk did not take them.
Clients that were dropped most often come first; each mark is a round, hover for its figures.</p>
{f"<h2>Warnings</h2><p>{len(warned):,} in all, the latest first.</p><ul>{warnings}</ul>" if warned else ""}
{_KEY}
<div class="scroll"><table>
<thead><tr><th>client</th><th class="n">replies</th><th class="n">dropped</th><th>timeline</th><th>why</th></tr></thead>
<tbody>
{timelines}
</tbody>
</table></div>
{left_out}
<h2>Rounds</h2>
{f"<ul>{notes}</ul>" if notes else "<p>No round was skipped.</p>"}
<div class="scroll"><table>
<thead><tr><th class="n">round</th><th>run</th><th>rule</th><th class="n">kept</th><th class="n">rejected</th>
<th class="n">assumed malicious</th></tr></thead>
<tbody>
{"".join(_round_row(r) for r in rounds)}
</tbody>
</table></div>
</body>
</html>
"""


def _client_row(
    summary: ClientSummary,
    rounds: list[Mapping[str, Any]],
    records: Mapping[tuple[str, Any, str], Mapping[str, Any]],
) -> str:
    marks = "".join(_mark(r, records.get((str(r["run"]), r["round"], summary.client))) for r in rounds)
    why = "<br>".join(map(escape, summary.why(5)))
    return (
        f'<tr><td>{escape(name(summary.client))}</td><td class="n">{summary.replies}</td>'
        f'<td class="n">{summary.dropped} ({summary.share:.0%})</td>'
        f'<td><div class="line">{marks}</div></td><td class="why">{why}</td></tr>'
    )


def _mark(of: Mapping[str, Any], record: Mapping[str, Any] | None) -> str:
    if record is None or of["note"]:
        return "<i></i>"
    kind = "kept" if record["kept"] else "out" if record["usable"] else "bad"
    figures = [f"round {of['round']}", f"claims {record['claimed_quantity']}"]
    figures += [
        f"{label} {record[key]:.4g}"
        for label, key in (("implied", "implied_quantity"), ("score", "score"), ("cut", "cut"), ("weight", "weight"))
        if record.get(key) is not None
    ]
    if record["reason"]:
        figures.append(clipped(record["reason"]))
    return f'<i class="{kind}" title="{escape(", ".join(figures), quote=True)}"></i>'


def _round_row(record: Mapping[str, Any]) -> str:
    malicious = record.get("num_malicious")
    return (
        f'<tr><td class="n">{record["round"]}</td><td>{escape(name(record["run"]))}</td>'
        f'<td>{escape(name(record["rule"]))}</td><td class="n">{record["kept"]}</td>'
        f'<td class="n">{record["rejected"]}</td>'
        f'<td class="n">{"-" if malicious is None else malicious}</td></tr>'
    )
