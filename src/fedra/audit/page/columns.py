"""The replies of a trail as the page has them: columns of numbers, compressed, with every text stored once."""

from __future__ import annotations

import base64
import json
import math
import struct
import sys
import zlib
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fedra.audit.reading import Trail
from fedra.audit.summary import ClientSummary, name
from fedra.untrusted import clipped, encodable

# More of them a browser shows only slowly; the latest are on the page.
MOST_REPLIES = 1_000_000
MOST_ROUNDS = 100_000
# Reasons are what clients make of them: some hundred letters each, all of them different.
MOST_REASON_LETTERS = 20_000_000
_NO_REASON_KEPT = "(this page has no room for the reason: it is in the trail)"

KEPT, DROPPED, UNUSABLE, SKIPPED = range(4)
_ALIGNED = 8


@dataclass(kw_only=True)
class _Texts:
    """Texts that are stored once and named by index, made harmless, and not too many letters of them."""

    left: int
    values: list[str] = field(default_factory=list)
    _places: dict[str, int] = field(default_factory=dict)

    def place(self, text: str) -> int:
        if (found := self._places.get(text)) is not None:
            return found
        shown = encodable(clipped(text))
        if len(shown) > self.left:
            return self.place(_NO_REASON_KEPT) if text != _NO_REASON_KEPT else self._add(text, text)
        self.left -= len(shown)
        return self._add(text, shown)

    def _add(self, text: str, shown: str) -> int:
        self._places[text] = len(self.values)
        self.values.append(shown)
        return self._places[text]


def packed(trail: Trail, summaries: Sequence[ClientSummary]) -> tuple[str, int]:
    """Return all that the page draws, as Base64 of a zlib stream, and how many replies there was no room for.

    The stream is the length of a JSON text (4 bytes, little-endian), the text, and the columns that it names, each of
    them at a multiple of 8 bytes.
    """
    texts = _Texts(left=MOST_REASON_LETTERS)
    rounds, places = _rounds(trail, texts)
    replies = [
        record for record in trail.clients if record["phase"] == "train" and (record["run"], record["round"]) in places
    ]
    # Clients of skipped rounds only are in no summary, and in the rounds' details all the same.
    known = {each.client for each in summaries}
    summaries = [*summaries, *map(_nothing, dict.fromkeys(c for r in replies if (c := str(r["client"])) not in known))]
    left_out = max(0, len(replies) - MOST_REPLIES)
    replies = replies[left_out:]
    columns = _columns(replies, rounds, places, {each.client: at for at, each in enumerate(summaries)}, texts)
    header = {
        "clients": _clients(summaries),
        "rounds": rounds,
        "texts": texts.values,
        "columns": [[title, column.typecode, len(column)] for title, column in columns.items()],
    }
    return base64.b64encode(zlib.compress(_laid_out(header, columns), 6)).decode(), left_out


def _rounds(trail: Trail, texts: _Texts) -> tuple[dict[str, list[Any]], dict[tuple[Any, int], int]]:
    """Return the training rounds as columns, and where each of them is."""
    lines = [line for line in trail.rounds if line["phase"] == "train"][-MOST_ROUNDS:]
    places = {(line["run"], line["round"]): at for at, line in enumerate(lines)}
    return {
        "number": [line["round"] for line in lines],
        "run": [texts.place(name(line["run"])) for line in lines],
        "rule": [texts.place(name(line["rule"])) for line in lines],
        "time": [line.get("time") for line in lines],
        "malicious": [line.get("num_malicious") for line in lines],
        "note": [texts.place(line["note"]) for line in lines],
        "warnings": [[texts.place(text) for text in line.get("warnings", ())[:20]] for line in lines],
    }, places


def _clients(summaries: Sequence[ClientSummary]) -> dict[str, list[Any]]:
    return {
        "name": [encodable(name(each.client)) for each in summaries],
        "replies": [each.replies for each in summaries],
        "dropped": [each.dropped for each in summaries],
        "unusable": [each.unusable for each in summaries],
        "claim": [each.median_claim for each in summaries],
        "implied": [each.median_implied for each in summaries],
        "why": [encodable("; ".join(each.why(2))) for each in summaries],
    }


def _nothing(client: str) -> ClientSummary:
    return ClientSummary(
        client=client, replies=0, dropped=0, unusable=0, reasons=(), median_claim=None, median_implied=None
    )


def _columns(
    replies: Sequence[Mapping[str, Any]],
    rounds: Mapping[str, Sequence[Any]],
    places: Mapping[tuple[Any, int], int],
    clients: Mapping[str, int],
    texts: _Texts,
) -> dict[str, array[Any]]:
    at = [places[record["run"], record["round"]] for record in replies]
    skipped = [bool(texts.values[note]) for note in rounds["note"]]
    return {
        "round": array("I", at),
        "client": array("I", [clients[str(record["client"])] for record in replies]),
        "state": array("B", [_state(record, skipped[place]) for record, place in zip(replies, at, strict=True)]),
        "reason": array("I", [texts.place(record["reason"]) for record in replies]),
        "claim": _amounts("d", "claimed_quantity", replies),
        "implied": _amounts("f", "implied_quantity", replies),
        "score": _amounts("f", "score", replies),
        "cut": _amounts("f", "cut", replies),
        "weight": _amounts("f", "weight", replies),
    }


def _state(record: Mapping[str, Any], skipped: bool) -> int:
    if skipped:
        return SKIPPED
    return KEPT if record["kept"] else DROPPED if record["usable"] else UNUSABLE


def _amounts(kind: str, key: str, replies: Sequence[Mapping[str, Any]]) -> array[Any]:
    """Return a column of numbers, NaN where there is none; array() takes what a float32 cannot hold for infinite."""
    values = (record.get(key) for record in replies)
    return array(kind, [math.nan if value is None else float(value) for value in values])


def _laid_out(header: Mapping[str, Any], columns: Mapping[str, array[Any]]) -> bytes:
    text = json.dumps(header, separators=(",", ":"), allow_nan=False).encode()
    parts = [_padded(struct.pack("<I", len(text)) + text)]
    for column in columns.values():
        if sys.byteorder == "big":
            column.byteswap()
        parts.append(_padded(column.tobytes()))
    return b"".join(parts)


def _padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % _ALIGNED)
