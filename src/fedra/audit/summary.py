"""Who was dropped how often, and why."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fedra.audit.reading import Trail
from fedra.server.records import LEFT_OUT
from fedra.untrusted import clipped

_LONGEST_NAME = 80
_LARGEST_IN_FULL = 1e15
_SHOWN_WARNINGS = 10
_SHOWN_NOTES = 20
_SHOWN_GAPS = 5


@dataclass(frozen=True, kw_only=True)
class ClientSummary:
    """One client over all training rounds: replies, how many were dropped, the commonest reasons, median claims.

    `dropped` counts what the rule left out and the `unusable` replies. A reason is given as it was worded last, with
    how often there was one of its kind. `median_implied` is what its updates speak for, where the rule estimates that.
    """

    client: str
    replies: int
    dropped: int
    unusable: int
    reasons: tuple[tuple[str, int], ...]
    median_claim: float | None
    median_implied: float | None

    @property
    def share(self) -> float:
        """The share of its replies that was dropped."""
        return self.dropped / self.replies if self.replies else 0.0

    def why(self, most: int) -> list[str]:
        """Return the commonest reasons as texts that can be shown."""
        return [clipped(text) + ("" if times == 1 else f" (last of {times})") for text, times in self.reasons[:most]]


def reason_kind(reason: str) -> str:
    """Return a reason without its figures, so that one reason of many rounds counts as one."""
    return re.sub(r"-?\d[\d,.]*(e[+-]?\d+)?", "#", reason)


def summarise(trail: Trail) -> list[ClientSummary]:
    """Return each client's summary, those dropped most often first.

    Training counts, since evaluation follows it; an evaluation reply's own fault is told among the reasons. Rounds
    that were skipped do not count.
    """
    skipped = {(r["run"], r["round"], r["phase"]) for r in trail.rounds if r["note"]}
    replies: Counter[str] = Counter()
    dropped: Counter[str] = Counter()
    unusable: Counter[str] = Counter()
    reasons: dict[str, Counter[str]] = {}
    worded: dict[tuple[str, str], str] = {}
    claims: dict[str, list[float]] = {}
    implied: dict[str, list[float]] = {}
    for record in trail.clients:
        if (record["run"], record["round"], record["phase"]) in skipped:
            continue
        client, reason = str(record["client"]), str(record["reason"])
        training = record["phase"] == "train"
        replies[client] += training
        if not record["kept"] and (training or reason != LEFT_OUT):
            dropped[client] += training
            unusable[client] += training and not record["usable"]
            reason = reason if training else f"in evaluation: {reason}"
            kind = reason_kind(reason)
            reasons.setdefault(client, Counter())[kind] += 1
            worded[client, kind] = reason
        if training and record["claimed_quantity"] is not None:
            claims.setdefault(client, []).append(float(record["claimed_quantity"]))
        if training and record.get("implied_quantity") is not None:
            implied.setdefault(client, []).append(float(record["implied_quantity"]))
    found = [
        ClientSummary(
            client=client,
            replies=count,
            dropped=dropped[client],
            unusable=unusable[client],
            reasons=tuple(
                (worded[client, kind], times) for kind, times in reasons.get(client, Counter()).most_common()
            ),
            median_claim=_median(claims.get(client, [])),
            median_implied=_median(implied.get(client, [])),
        )
        for client, count in replies.items()
    ]
    return sorted(found, key=lambda summary: (-summary.share, -summary.dropped, summary.client))


def summary_text(trail: Trail) -> str:
    """Return the summary as a table with a headline."""
    training = [r for r in trail.rounds if r["phase"] == "train"]
    skipped = sum(bool(r["note"]) for r in training)
    runs = len({r["run"] for r in trail.rounds})
    lines = [f"{_count(len(training), 'training round')} of {_count(runs, 'run')}, {skipped} skipped"]
    if not trail.rounds and not trail.clients:
        lines.append("the trail is empty: no round has ended yet")
    noted = [r for r in trail.rounds if r["note"]]
    if len(noted) > _SHOWN_NOTES:
        lines.append(f"  skipped: {len(noted) - _SHOWN_NOTES} rounds before these")
    lines += [
        f"  skipped: round {r['round']} ({name(r['phase'])}, run {name(r['run'])}): {clipped(r['note'])}"
        for r in noted[-_SHOWN_NOTES:]
    ]
    warned = [(r["round"], clipped(text)) for r in training for text in r.get("warnings", ())]
    if warned:
        lines.append(f"{_count(len(warned), 'warning')}, the last:")
        lines += [f"  round {number}: {text}" for number, text in warned[-_SHOWN_WARNINGS:]]
    lines += what_is_missing(trail)
    rows = [("client", "replies", "dropped", "share", "median claim", "why")]
    rows += [
        (
            name(summary.client),
            str(summary.replies),
            str(summary.dropped),
            f"{summary.share:.0%}",
            amount(summary.median_claim),
            "; ".join(summary.why(3)),
        )
        for summary in summarise(trail)
    ]
    return "\n".join([*lines, "", *_aligned(rows)])


def what_is_missing(trail: Trail) -> list[str]:
    """Return a line for each kind of thing that the trail does not have or that could not be read."""
    lines = []
    if trail.gaps:
        count = sum(gap.count for gap in trail.gaps)
        places = ", ".join(f"{gap} (run {name(gap.run)})" for gap in trail.gaps[:_SHOWN_GAPS])
        more = f" and {len(trail.gaps) - _SHOWN_GAPS} more places" if len(trail.gaps) > _SHOWN_GAPS else ""
        verb = "has" if count == 1 else "have"
        lines.append(
            f"{_count(count, 'training round')} {verb} no line: {places}{more} (a server stopped before it wrote?)"
        )
    if trail.skipped_bytes:
        lines.append(
            f"the first {trail.skipped_bytes:,} bytes were skipped: the trail is too long to be read as a whole"
        )
    if trail.unreadable:
        lines.append(f"{_count(trail.unreadable, 'line')} could not be read (a server stopped while writing?)")
    if trail.lost:
        lines.append(f"{_count(trail.lost, 'line')} are missing, which the disk did not take")
    return lines


def summary_dict(trail: Trail) -> dict[str, Any]:
    """Return the summary as plain values for JSON; texts are those of the trail, as long as they are."""
    training = [r for r in trail.rounds if r["phase"] == "train"]
    return {
        "runs": list(dict.fromkeys(str(r["run"]) for r in trail.rounds)),
        "training_rounds": len(training),
        "skipped": [
            {"run": str(r["run"]), "round": r["round"], "phase": r["phase"], "note": r["note"]}
            for r in trail.rounds
            if r["note"]
        ],
        "warnings": [
            {"run": str(r["run"]), "round": r["round"], "text": text}
            for r in training
            for text in r.get("warnings", ())
        ],
        "gaps": [{"run": gap.run, "first": gap.first, "last": gap.last} for gap in trail.gaps],
        "unreadable_lines": trail.unreadable,
        "lost_lines": trail.lost,
        "skipped_bytes": trail.skipped_bytes,
        "clients": [
            {
                "client": summary.client,
                "replies": summary.replies,
                "dropped": summary.dropped,
                "unusable": summary.unusable,
                "share": summary.share,
                "median_claim": summary.median_claim,
                "median_implied": summary.median_implied,
                "reasons": [{"last": text, "times": times} for text, times in summary.reasons],
            }
            for summary in summarise(trail)
        ],
    }


def name(text: object) -> str:
    """Return a client, a run or a rule as it can be shown."""
    return clipped(text, _LONGEST_NAME)


def amount(value: float | None) -> str:
    """Return a quantity, or a dash where there is none."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) < _LARGEST_IN_FULL else f"{value:.4g}"


def _median(values: list[float]) -> float | None:
    if not values:
        return None
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else ordered[middle - 1] / 2 + ordered[middle] / 2


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _aligned(rows: Iterable[tuple[str, ...]]) -> list[str]:
    table = list(rows)
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    last = len(widths) - 1
    return [
        "  ".join(
            cell.ljust(width) if column in (0, last) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]
