"""What happened in one round, as one plain record, whichever platform the round was run on."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

# The reason of an evaluation reply whose sender the round's training left out; no fault of its own.
LEFT_OUT = "left out of this round's training"


@dataclass(frozen=True, kw_only=True)
class RoundRecord:
    """A round in figures, and one record for each client: claim, implied quantity, score, cut, kept, weight, reason.

    Attributes:
        run: the identifier of the run, so that runs that share a file stay apart.
        round: the number of the round, counted as the platform counts.
        phase: "train" or "evaluate".
        time: seconds since 1970 at which the round was decided.
        rule: the rule's name.
        num_malicious: how many clients the rule assumed or estimated to be malicious; None where it does neither.
        note: empty, or why the round changed nothing.
        clients: one record for each reply, in the order they came.
        warnings: what a person should look at although the round went on.
        metrics: numbers that the platform measured in this round, such as accuracy.
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
    metrics: Mapping[str, float] = field(default_factory=dict)

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

    def figures(self) -> dict[str, float]:
        """Return the round's numbers by name, as a tracker plots them; a metric of the same name does not hide one."""
        found = {"kept": float(self.kept), "rejected": float(self.rejected), "skipped": float(self.skipped)}
        if self.num_malicious is not None:
            found["estimated_malicious"] = float(self.num_malicious)
        found["warnings"] = float(len(self.warnings))
        return {**found, **{name: value for name, value in self.metrics.items() if name not in found}}

    def failed(self, note: str) -> RoundRecord:
        """Return the record of this round where nobody is part of it after all."""
        clients = [{**client, "kept": False, "weight": 0.0} for client in self.clients]
        return dataclasses.replace(self, note=note, clients=clients)
