"""What happened to the clients of one round, as plain records."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class RoundReport:
    """A round in figures, and one record for each reply: claim, implied quantity, score, cut, kept, weight, reason.

    Attributes:
        run: the identifier of the run, so that runs that share a file stay apart.
        round: the server's round, from 1.
        phase: "train" or "evaluate".
        time: seconds since 1970 at which the round was decided.
        rule: the rule's name.
        num_malicious: m~, used or estimated; None where the rule has none.
        note: empty, or why the round changed nothing.
        clients: one record for each reply, in the order they came.
        warnings: what a person should look at although the round went on.
    """

    run: str
    round: int
    phase: str
    time: float
    rule: str
    num_malicious: int | None
    note: str
    clients: Sequence[Mapping[str, Any]]
    warnings: Sequence[str] = ()

    @property
    def kept(self) -> int:
        """How many replies are part of the result."""
        return sum(bool(client["kept"]) for client in self.clients)

    @property
    def rejected(self) -> int:
        """How many replies are not."""
        return len(self.clients) - self.kept

    @property
    def skipped(self) -> bool:
        """Whether the round changed nothing."""
        return bool(self.note)

    def lines(self, *, lost: int = 0) -> list[str]:
        """Return the round as lines of JSON: one for each client, then one for the round itself.

        `lost` is how many lines before these could not be written, which the round's line then tells.
        """
        place = {"run": self.run, "round": self.round, "phase": self.phase}
        clients = [{"kind": "client", **place, **client} for client in self.clients]
        end = {
            "kind": "round",
            **place,
            "time": self.time,
            "rule": self.rule,
            "num_malicious": self.num_malicious,
            "kept": self.kept,
            "rejected": self.rejected,
            "note": self.note,
        }
        if self.warnings:
            end["warnings"] = list(self.warnings)
        if lost:
            end["lines_lost"] = lost
        return [json.dumps(record, allow_nan=False) for record in (*clients, end)]
