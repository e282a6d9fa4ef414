"""What in a round a person should look at, although the rule went on: one client in command, claims that do not fit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedra import checks
from fedra.cohort import Flags, Floats, display_id, implied_text, number_text

_NAMED = 5
_MOST_REMEMBERED = 100_000


@dataclass(frozen=True, kw_only=True)
class WarningLimits:
    """Beyond what a round is worth a warning.

    Attributes:
        share: one client's share of the result, where others have data too.
        excess: a kept client's claim, divided by the quantity that its update speaks for.
        streak: rounds running in which the same client was left out.
    """

    share: float = 0.5
    excess: float = 20.0
    streak: int = 5

    def __post_init__(self) -> None:
        for name, least in (("share", 0.0), ("excess", 1.0), ("streak", 1)):
            checks.number(name, getattr(self, name), least=least)


def round_warnings(
    *,
    client_ids: Sequence[Any],
    kept: Flags,
    quantities: Floats,
    weights: Floats | None,
    implied: Floats | None,
    limits: WarningLimits | None = None,
) -> tuple[str, ...]:
    """Return a sentence for each kind of thing that passed the rule and still looks wrong."""
    limits = limits or WarningLimits()
    warnings = []
    if weights is not None and np.isfinite(quantities).sum() > 1:
        warnings += [
            f"client {display_id(client_ids[i])} alone is {weights[i]:.0%} of this round's result, more than "
            f"{limits.share:.0%}"
            for i in np.flatnonzero(kept & (weights > limits.share)).tolist()
        ]
    if implied is not None:
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            excess = quantities / implied
        high = np.flatnonzero(kept & (excess > limits.excess))
        if len(high):
            worst = sorted(high.tolist(), key=lambda i: -excess[i])
            named = [
                f"{display_id(client_ids[i])} claims {number_text(float(quantities[i]))} and behaves like "
                f"{implied_text(float(implied[i]))}"
                for i in worst[:_NAMED]
            ]
            warnings.append(
                f"{_some(len(high))} more than {limits.excess:g} times as much data as the update supports: "
                + "; ".join(named)
                + _rest(len(high))
            )
    return tuple(warnings)


def _some(count: int) -> str:
    return "a kept client claims" if count == 1 else f"{count} kept clients claim"


def _rest(count: int) -> str:
    return f"; and {count - _NAMED} more" if count > _NAMED else ""


class Streaks:
    """Counts for how many rounds running each client was left out."""

    def __init__(self, limits: WarningLimits | None = None) -> None:
        self.limits = limits or WarningLimits()
        self._running: dict[Any, int] = {}

    def update(self, asked: Iterable[Any], kept: Iterable[Any]) -> tuple[str, ...]:
        """Take a round in; return a warning that names whoever has just reached the limit, or a multiple of it."""
        stays = set(kept)
        late = []
        for client in dict.fromkeys(asked):
            running = self._running.pop(client, 0) + 1
            if client in stays:
                continue
            self._running[client] = running
            if running % self.limits.streak == 0:
                late.append(client)
        # Nodes that come under a new name each round would fill the memory; the longest unseen are forgotten.
        while len(self._running) > _MOST_REMEMBERED:
            del self._running[next(iter(self._running))]
        if not late:
            return ()
        named = ", ".join(f"{display_id(client)} ({self._running[client]})" for client in late[:_NAMED])
        return (f"left out in every one of its last rounds: {named}{_rest(len(late))}; if honest, its data is lost",)
