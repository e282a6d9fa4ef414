"""`fedra audit --follow`: a line for each round as it is written, for a terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fedra.audit.following import Follower
from fedra.audit.gaps import find_gaps
from fedra.audit.summary import name
from fedra.untrusted import clipped

_LATEST = 10
_MOST_NAMES = 5
_LONGEST_WORDS = 120


def follow(follower: Follower, *, every: float = 1.0, rounds: int | None = None) -> Iterator[str]:
    """Yield lines of text: the latest ten rounds, then each round that is added; `rounds` is how many to wait for."""
    found, clients = follower.read()
    yield from _lines(found, clients, found[-_LATEST:])
    before = found[-1:]
    waiting: list[Mapping[str, Any]] = []
    seen = 0
    while rounds is None or seen < rounds:
        time.sleep(every)
        found, clients = follower.read()
        # A round's clients are written before its own line, and a look may fall in between.
        waiting += clients
        if found:
            for gap in find_gaps([*before, *found], whole=False):
                yield f"{gap} of run {name(gap.run)}: no line (a server stopped before it wrote?)"
            yield from _lines(found, waiting, found)
            before, waiting, seen = found[-1:], [], seen + len(found)


def _lines(
    rounds: Sequence[Mapping[str, Any]], clients: Sequence[Mapping[str, Any]], shown: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    wanted = {_key(line) for line in shown}
    left_out: dict[Any, list[Mapping[str, Any]]] = {}
    for record in clients:
        if not record["kept"] and _key(record) in wanted:
            left_out.setdefault(_key(record), []).append(record)
    for line in shown:
        yield from _round_lines(line, left_out.get(_key(line), []))


def _key(line: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    return line["run"], line["round"], line["phase"]


def _round_lines(line: Mapping[str, Any], left_out: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    malicious = line.get("num_malicious")
    when = "" if not line.get("time") else time.strftime("%H:%M:%S ", time.gmtime(min(line["time"], 2**40)))
    parts = [f"{when}round {line['round']}" + ("" if line["phase"] == "train" else f" {name(line['phase'])}")]
    if line["note"]:
        parts.append(f"skipped: {clipped(line['note'], _LONGEST_WORDS)}")
    else:
        parts.append(f"kept {line['kept']}, left out {line['rejected']}")
        if malicious is not None:
            parts.append(f"assumed malicious {malicious}")
    yield ", ".join(parts)
    if not line["note"]:
        for record in left_out[:_MOST_NAMES]:
            yield f"    {name(record['client'])}: {clipped(record['reason'], _LONGEST_WORDS)}"
        if len(left_out) > _MOST_NAMES:
            yield f"    and {len(left_out) - _MOST_NAMES} more"
    for text in line.get("warnings", ()):
        yield f"  ! {clipped(text)}"
