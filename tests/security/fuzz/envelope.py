"""Mutations of what surrounds a reply's values: metadata, content that is none, and far too much of everything."""

from __future__ import annotations

import random
from typing import Any

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from tests.security.fuzz import values

Draft = dict[str, Any]

_TEXTS = (*values.NAMES, "train", "evaluate", None, 5, b"x")
METADATA: dict[str, tuple[Any, ...]] = {
    "message_type": _TEXTS,
    "group_id": _TEXTS,
    "message_id": _TEXTS,
    "reply_to_message_id": _TEXTS,
    "run_id": (0, -1, 2**70, None, "1", "\x1b[2J"),
    "dst_node_id": (0, 1, 2**70, None, "1"),
    "ttl": (0.0, -1.0, 1e308, float("nan"), None, "x"),
    "created_at": (0.0, -1.0, 1e308, float("nan"), None, "x"),
}
_MANY = 20_000


def metadata(draft: Draft, rng: random.Random) -> None:
    field = rng.choice(list(METADATA))
    draft["metadata"][field] = rng.choice(METADATA[field])


def no_content(draft: Draft, rng: random.Random) -> None:
    draft["content"] = rng.choice([None, {}, [], "text", 5, b"", MetricRecord({"num-examples": 20})])


def odd_record_name(draft: Draft, rng: random.Random) -> None:
    draft["records"][rng.choice([None, 3, 0.5, ("a",), b"arrays", True])] = rng.choice([ConfigRecord(), MetricRecord()])


def config(draft: Draft, rng: random.Random) -> None:
    """A config record, or two, of values that Flower lets pass."""
    for _ in range(rng.choice([1, 2])):
        made = ConfigRecord()
        made.__dict__["_data"][rng.choice(values.NAMES)] = rng.choice(
            [True, "text", b"\x80\x04", ["a"] * 50, [b"x"], [True, 1.5], [], {}, None, [[]], 10**400]
        )
        draft["records"][rng.choice(["config", "state", *values.NAMES])] = made


def excess(draft: Draft, rng: random.Random) -> None:
    """So much of one thing that reading it all would take longer than the round."""
    kind = rng.randrange(5)
    held = {type(found): found.__dict__["_data"] for found in draft["records"].values() if hasattr(found, "__dict__")}
    if kind == 0:
        held.get(MetricRecord, {}).update(_MANY_NUMBERS)
    elif kind == 1:
        held.get(MetricRecord, {}).update(_MANY_LISTS)
    elif kind == 2:
        draft["records"].update(_MANY_RECORDS)
    elif kind == 3:
        draft["records"]["config"] = _LARGE_CONFIG
    else:
        held.get(ArrayRecord, {}).update(_MANY_NUMBERS)


def build(message: Message, draft: Draft) -> list[Message]:
    """The replies that a draft describes, past the checks of Flower's own classes."""
    if draft["error"] is not None:
        replies = [Message(draft["error"], reply_to=message)]
    else:
        content = RecordDict()
        content.__dict__["_data"].update(draft["records"])
        replies = [Message(content, reply_to=message) for _ in range(draft["copies"])]
    for reply in replies:
        if draft["content"] is not ...:
            reply.__dict__["_content"] = draft["content"]
        if draft["node"] is not None:
            reply.metadata.__dict__["_src_node_id"] = draft["node"]
        for field, value in draft["metadata"].items():
            reply.metadata.__dict__[f"_{field}"] = value
    return replies


# Made once: the fuzzer is to spend its time in what it fuzzes.
_MANY_NUMBERS = {f"key-{place}": 0.5 for place in range(_MANY)}
_MANY_LISTS = {f"list-{place}": [0.5] * 50_000 for place in range(3)}
_MANY_RECORDS = {f"record-{place}": ConfigRecord() for place in range(300)}
_LARGE_CONFIG = ConfigRecord()
_LARGE_CONFIG.__dict__["_data"].update(_MANY_NUMBERS)
