"""Replies, each read alone: what cannot be used is set aside with a reason and never raises."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from fedra.screening import read_claim
from fedra.server.faults import Unusable, short
from fedra.server.layout import Layout, settle_layout


@dataclass(eq=False, kw_only=True)
class Reply:
    """One client's reply: what it claims and sent, or in `fault` why it cannot be used.

    `asked`: whether the server asked its sender. `metrics` are all but the claim. `layout` is how it came; `handed_as`
    are the names under which its array record and metric record are handed on.
    """

    client: Any
    message: Any
    fault: str = ""
    asked: bool = True
    claim: float = math.nan
    metrics: dict[str, Any] = field(default_factory=dict)
    views: list[npt.NDArray[Any]] = field(default_factory=list)
    layout: Layout = field(default_factory=Layout)
    handed_as: tuple[str, str] = ("", "")

    def take_claim(self, claim: Any, name: str) -> None:
        """Take a claimed quantity, which the platform calls `name`; `Unusable` where it is none."""
        self.claim, fault = read_claim(claim, short(name))
        if fault:
            raise Unusable(fault)


def read_all(
    replies: list[Reply], fill: Callable[[Reply], None], asked: frozenset[Any] | None, own: Layout
) -> list[Reply]:
    """Let `fill` read each reply, refuse what nobody asked for or came twice, then those laid out unlike most."""
    seen: set[Any] = set()
    for reply in replies:
        read_reply(reply, fill, seen, asked)
    settle_layout(replies, own)
    return replies


def read_reply(
    reply: Reply, fill: Callable[[Reply], None], seen: set[Any], asked: frozenset[Any] | None = None
) -> None:
    """Let `fill` read a reply; why it cannot be used becomes its fault. `seen` are the clients that replied before."""
    try:
        if asked is not None and reply.client not in asked:
            reply.asked = False
            raise Unusable(f"{short(reply.client)} was not asked in this round")
        if reply.client in seen:
            raise Unusable("another reply of the same client came first")
        seen.add(reply.client)
        fill(reply)
    except Unusable as fault:
        reply.fault = str(fault)
    except Exception as error:  # a client's content may do anything when it is read
        reply.fault = f"cannot be read: {type(error).__name__}: {short(error)}"
