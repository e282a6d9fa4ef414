"""A round of twelve clients, one of whom lies about its update and its quantity, and what each rule makes of it."""

from __future__ import annotations

import numpy as np

import fedra

LIAR = 7


def a_round(dimension: int = 20_000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the honest direction, the updates (noise shrinks with the quantity) and the claimed quantities."""
    rng = np.random.default_rng(2023)
    truth = rng.normal(0, 0.3, dimension)
    quantities = np.array([3, 41, 1, 12, 160, 1, 7, 9_000, 2, 25, 1, 68])
    honest = np.where(np.arange(12) == LIAR, 1, quantities)
    updates = truth + rng.normal(0, 1, (12, dimension)) / np.sqrt(honest)[:, np.newaxis]
    updates[LIAR] = -truth + rng.normal(0, 0.3, dimension)
    return truth, updates.astype(np.float32), quantities


def main() -> None:
    truth, updates, quantities = a_round()
    print(f"Twelve clients. Client {LIAR} sends the opposite of what the others learned and claims 9,000 samples.\n")
    print(f"{'rule':<14}{'family':<20}{'error':>7}  {'the liar':<20}outcome")
    print("-" * 71)
    for name, rule in fedra.RULES.items():
        verdict = rule()(updates, quantities)
        error = np.linalg.norm(verdict.update - truth) / np.linalg.norm(truth)
        if not verdict.kept[LIAR]:
            part = "left out"
        else:
            part = "takes part" if verdict.weights is None else f"{verdict.weights[LIAR]:.1%} of the vote"
        print(f"{name:<14}{rule.family:<20}{error:>7.2f}  {part:<20}{'captured' if error > 1 else ''}")
    print("\nerror: distance of the aggregate from the honest direction, in lengths of that direction.\n")
    print(fedra.FedRA(malicious_ratio=0.1)(updates, quantities))


if __name__ == "__main__":
    main()
