"""Rounds of a federation in which attackers know the rule, as vectors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import fedra

KINDS_OF_QUANTITIES = ("equal", "spread", "long-tailed")


@dataclass(frozen=True, eq=False)
class Honest:
    """A round's truth, and what honest clients send and claim: means over q samples of unit variance a coordinate."""

    truth: np.ndarray
    updates: np.ndarray
    quantities: np.ndarray


def honest_clients(rng, clients, quantities="spread", *, dimension=400, signal=0.3) -> Honest:
    drawn = {
        "equal": np.full(clients, 20.0),
        "spread": np.maximum(1, np.floor(np.exp(rng.normal(3, 1, clients)))),
        "long-tailed": np.clip(np.floor(np.exp(rng.normal(np.log(20) - 4.5, 3, clients))), 1, 2000),
    }[quantities]
    truth = signal * rng.standard_normal(dimension)
    updates = truth + rng.standard_normal((clients, dimension)) / np.sqrt(drawn)[:, np.newaxis]
    return Honest(truth, updates, drawn)


@dataclass(frozen=True, kw_only=True)
class Decoys:
    """Attackers of whom some lie far away, and the others somewhere on the way from the truth to -10 times it.

    `distances` are the decoys', in norms of the truth; `way` 1 is -10 times the truth; `claim` is in units of the
    largest honest claim; `clusters` cut the others into so many groups in different places.
    """

    distances: tuple[float, ...] = ()
    way: float = 1.0
    jitter: bool = False
    claim: float = 1.0
    clusters: int = 1

    def __call__(self, rng, honest, attackers) -> tuple[np.ndarray, np.ndarray]:
        claim = self.claim * honest.quantities.max()
        far = self.distances[: attackers - 1]
        rows = [-distance * honest.truth for distance in far]
        aside = rng.standard_normal((self.clusters, len(honest.truth)))
        for number in range(attackers - len(far)):
            row = (1 - 11 * self.way) * honest.truth + 0.5 * (number % self.clusters) * aside[number % self.clusters]
            rows.append(row + rng.standard_normal(len(row)) / np.sqrt(claim) if self.jitter else row)
        return np.array(rows), np.full(attackers, claim)


def judged(rule, honest, rows, claims):
    """Return the verdict, the attackers' weight, and the cosine between result and truth; attackers come last."""
    verdict = rule(np.vstack([honest.updates, rows]), np.concatenate([honest.quantities, claims]))
    result = np.zeros_like(honest.truth) if verdict.update is None else verdict.update
    lengths = np.linalg.norm(result) * np.linalg.norm(honest.truth)
    cosine = float(result @ honest.truth / lengths) if lengths else 0.0
    return verdict, float(verdict.weights[len(honest.updates) :].sum()), cosine


def default() -> fedra.FedRA:
    return fedra.FedRA(malicious_ratio=0.1)
