"""Rounds as a strategy records them, for tests of the trail."""

from __future__ import annotations

from fedra.server import RoundRecord


def round_record(
    number: int = 1, clients: int = 3, note: str = "", reason: str = "score 3 is past the cut 2", **more
) -> RoundRecord:
    """A round in which client 3 is left out."""
    return RoundRecord(
        run="7",
        round=number,
        phase="train",
        time=0.0,
        rule="fedra",
        num_malicious=1,
        note=note,
        clients=[
            {
                "client": client,
                "claimed_quantity": 10.0 * client,
                "implied_quantity": 9.5,
                "score": 1.0 + client,
                "cut": 2.0,
                "kept": client != 3,
                "weight": 0.5 if client != 3 else 0.0,
                "reason": "" if client != 3 else reason,
                "usable": True,
            }
            for client in range(1, clients + 1)
        ],
        **more,
    )
