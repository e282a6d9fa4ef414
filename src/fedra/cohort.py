"""What the server received in a round, and what it decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fedra.kernels import Rows
from fedra.untrusted import clipped

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
# What a rule remembers between rounds: named arrays of numbers.
RuleState = Mapping[str, npt.NDArray[Any]]

_LONGEST_ID = 60


@dataclass(frozen=True, eq=False, kw_only=True)
class Cohort:
    """The usable clients of a round: updates g^i, claimed quantities q^i and identifiers, all screened.

    Identifiers are what the server knows clients by, for rules that remember them. `threads` is how many threads a rule
    may use for it (None: one per core).
    """

    rows: Rows
    quantities: Floats
    client_ids: tuple[Any, ...]
    threads: int | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def shares(self) -> Floats:
        """Each client's share of the claimed quantity, ``q^i / sum q``, safe for any finite claim."""
        return shares(self.quantities)


def shares(quantities: Floats) -> Floats:
    """Return quantities divided by their sum, which may itself be too large for a float."""
    if not len(quantities):
        return quantities
    scaled = quantities / quantities.max()
    parts: Floats = scaled / scaled.sum()
    return parts


@dataclass(frozen=True, eq=False, kw_only=True)
class Verdict:
    """What a rule made of a round: the aggregate, and for each of the n clients its part in it and why.

    Attributes:
        rule: the rule's registry name.
        update: the aggregate, (d,) in the updates' type; None when there is none, and `note` says why.
        kept: (n,) whether the client is part of the aggregate.
        weights: (n,) weights that add up to 1, 0 where not kept; None for rules without weights per client.
        scores: (n,) scores, larger is more suspicious, NaN where screened out; None for rules without scores.
        num_malicious: the m~ that was used or estimated; None where the rule has none.
        reasons: n texts, empty for kept clients.
        note: empty, or why there is no update.
        implied_quantities: (n,) the quantity each client's distances speak for; None where the rule has none.
        cut: the largest score that was kept; None for rules without scores.
        client_ids: n identifiers, as given.
        quantities: (n,) claimed quantities, NaN where the claim was not a usable number.
        usable: (n,) whether the client passed screening.
        warnings: what a person should look at although the rule went on, in sentences.
        state: what a stateful rule remembers after this round, for the next one; None for others.
    """

    rule: str
    update: npt.NDArray[Any] | None
    kept: Flags
    weights: Floats | None
    scores: Floats | None
    num_malicious: int | None
    reasons: tuple[str, ...]
    note: str
    implied_quantities: Floats | None
    cut: float | None
    client_ids: tuple[Any, ...]
    quantities: Floats
    usable: Flags
    warnings: tuple[str, ...] = ()
    state: RuleState | None = None

    def __len__(self) -> int:
        return len(self.kept)

    def to_records(self) -> list[dict[str, Any]]:
        """Return one plain dictionary for each client, in the order they came; what is not a number is None."""
        return [
            {
                "client": _plain(self.client_ids[i]),
                "claimed_quantity": _number(self.quantities, i),
                "implied_quantity": _number(self.implied_quantities, i),
                "score": _number(self.scores, i),
                "cut": self.cut,
                "kept": bool(self.kept[i]),
                "weight": _number(self.weights, i),
                "reason": self.reasons[i],
            }
            for i in range(len(self))
        ]

    def by_suspicion(self) -> list[int]:
        """Return the clients' positions, most suspicious first: screened out, then left out, then by score."""

        def rank(i: int) -> tuple[int, float, int]:
            score = _number(self.scores, i)
            return (int(self.usable[i]) + int(self.kept[i]), -(score or 0.0), i)

        return sorted(range(len(self)), key=rank)

    def table(self, limit: int | None = None) -> str:
        """Return a readable table of the first `limit` clients (None: all), most suspicious first."""
        order = self.by_suspicion()
        listed = order if limit is None else order[:limit]
        columns: list[tuple[str, Sequence[str]]] = [
            ("client", [display_id(self.client_ids[i]) for i in listed]),
            ("claims", [number_text(_number(self.quantities, i)) for i in listed]),
        ]
        if self.implied_quantities is not None:
            columns.append(("behaves like", [implied_text(self.implied_quantities[i]) for i in listed]))
        if self.scores is not None:
            columns.append(("score", [number_text(_number(self.scores, i)) for i in listed]))
        if self.weights is not None:
            columns.append(("weight", [number_text(_number(self.weights, i)) for i in listed]))
        columns.append(("kept", ["yes" if self.kept[i] else "no" for i in listed]))
        columns.append(("why", [self.reasons[i] for i in listed]))
        lines = _aligned(columns)
        if len(listed) < len(order):
            lines.append(f"... and {len(order) - len(listed)} more clients")
        return "\n".join([self._headline(), *lines, *(f"warning: {warning}" for warning in self.warnings)])

    def _headline(self) -> str:
        parts = [f"{self.rule}: {int(self.kept.sum())} of {len(self)} clients kept"]
        if self.num_malicious is not None:
            parts.append(f"{self.num_malicious} assumed malicious")
        if self.cut is not None:
            parts.append(f"cut at score {number_text(self.cut)}")
        if self.note:
            parts.append(f"no update: {self.note}")
        return ", ".join(parts)

    def __str__(self) -> str:
        return self.table(limit=20)


def display_id(client: Any) -> str:
    """Return a client's identifier as a short text that is safe to print."""
    return clipped(client, _LONGEST_ID)


def number_text(value: float | None) -> str:
    """Say a number as a person would write it."""
    if value is None:
        return "-"
    if value != 0 and not 1e-3 <= abs(value) < 1e13:
        return f"{value:.3g}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def implied_text(quantity: float) -> str:
    """Say an implied quantity, which is an estimate, with the digits it deserves."""
    if np.isnan(quantity):
        return "-"
    if np.isinf(quantity):
        return "any number"
    if quantity < 0.1:
        return "less than 0.1"
    return f"{quantity:.1f}" if quantity < 10 else number_text(round(quantity))


def _number(values: Floats | None, i: int) -> float | None:
    if values is None or not np.isfinite(values[i]):
        return None
    return float(values[i])


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _aligned(columns: list[tuple[str, Sequence[str]]]) -> list[str]:
    """Lay out columns under their headings: numbers to the right, the first and last column to the left."""
    widths = [max([len(heading), *map(len, cells)]) for heading, cells in columns]
    last = len(columns) - 1

    def line(cells: Sequence[str]) -> str:
        placed = [
            cell.ljust(width) if place in (0, last) else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return "  ".join(placed).rstrip()

    rows = zip(*(cells for _, cells in columns), strict=True)
    return [line([heading for heading, _ in columns]), line(["-" * width for width in widths]), *map(line, rows)]
