"""Who was dropped how often, and why."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from fedra.audit.reading import Trail
from fedra.server.records import LEFT_OUT
from fedra.untrusted import clipped

_LONGEST_NAME = 80
_LARGEST_IN_FULL = 1e15
_SHOWN_WARNINGS = 10


@dataclass(frozen=True, kw_only=True)
class ClientSummary:
    """One client over all training rounds: replies, how many were dropped, the commonest reasons, its median claim.

    A reason is given as it was worded last, with how often there was one of its kind.
    """

    client: str
    replies: int
    dropped: int
    reasons: tuple[tuple[str, int], ...]
    median_claim: float | None

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
    reasons: dict[str, Counter[str]] = {}
    worded: dict[tuple[str, str], str] = {}
    claims: dict[str, list[float]] = {}
    for record in trail.clients:
        if (record["run"], record["round"], record["phase"]) in skipped:
            continue
        client, reason = str(record["client"]), str(record["reason"])
        training = record["phase"] == "train"
        replies[client] += training
        if not record["kept"] and (training or reason != LEFT_OUT):
            dropped[client] += training
            reason = reason if training else f"in evaluation: {reason}"
            kind = reason_kind(reason)
            reasons.setdefault(client, Counter())[kind] += 1
            worded[client, kind] = reason
        if training and record["claimed_quantity"] is not None:
            claims.setdefault(client, []).append(float(record["claimed_quantity"]))
    found = [
        ClientSummary(
            client=client,
            replies=count,
            dropped=dropped[client],
            reasons=tuple(
                (worded[client, kind], times) for kind, times in reasons.get(client, Counter()).most_common()
            ),
            median_claim=_median(claims.get(client, [])),
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
    lines += [
        f"  skipped: round {r['round']} ({name(r['phase'])}, run {name(r['run'])}): {clipped(r['note'])}"
        for r in trail.rounds
        if r["note"]
    ]
    warned = [(r["round"], clipped(text)) for r in training for text in r.get("warnings", ())]
    if warned:
        lines.append(f"{_count(len(warned), 'warning')}, the last:")
        lines += [f"  round {number}: {text}" for number, text in warned[-_SHOWN_WARNINGS:]]
    if trail.skipped_bytes:
        lines.append(f"the first {trail.skipped_bytes:,} bytes were not looked at: the trail is too long for all of it")
    if trail.unreadable:
        lines.append(f"{_count(trail.unreadable, 'line')} could not be read (a server stopped while writing?)")
    if trail.lost:
        lines.append(f"{_count(trail.lost, 'line')} are missing, which the disk did not take")
    rows = [("client", "replies", "dropped", "share", "median claim", "why")]
    rows += [
        (
            name(summary.client),
            str(summary.replies),
            str(summary.dropped),
            f"{summary.share:.0%}",
            "-" if summary.median_claim is None else _amount(summary.median_claim),
            "; ".join(summary.why(3)),
        )
        for summary in summarise(trail)
    ]
    return "\n".join([*lines, "", *_aligned(rows)])


def name(text: object) -> str:
    """Return a client, a run or a rule as it can be shown."""
    return clipped(text, _LONGEST_NAME)


def _amount(value: float) -> str:
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
