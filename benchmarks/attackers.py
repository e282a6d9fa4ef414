"""What attackers who see everything get of a round, rule by rule: their weight, and where they turn the result."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from harness import ONE_THREAD, RESULTS, quote, table, write

os.environ |= ONE_THREAD

import numpy as np

import fedra

PAGE = RESULTS.parents[1] / "docs" / "security.md"
DIMENSION, SEEDS = 400, 30
CLEAR, FAINT = 0.3, 0.05
RULES = {
    "fedavg": fedra.FedAvg(),
    "median": fedra.Median(),
    "multi-krum": fedra.MultiKrum(malicious_ratio=0.1, clamp=True),
    "truncate": fedra.Truncate(),
    "fedra as printed": fedra.FedRA.as_printed(malicious_ratio=0.1),
    "fedra": fedra.FedRA(malicious_ratio=0.1),
    "concord": fedra.Concord(malicious_ratio=0.1),
}


@dataclass(frozen=True, eq=False)
class Honest:
    """What honest clients send and claim: means over q samples of unit variance in each coordinate."""

    truth: np.ndarray
    updates: np.ndarray
    quantities: np.ndarray

    @property
    def largest(self) -> float:
        return float(self.quantities.max())


Attack = tuple[np.ndarray, np.ndarray]
Figures = dict[str, float | None]


def honest_clients(rng: np.random.Generator, clients: int, signal: float) -> Honest:
    quantities = np.maximum(1, np.floor(np.exp(rng.normal(3, 1, clients))))
    truth = signal * rng.standard_normal(DIMENSION)
    noise = rng.standard_normal((clients, DIMENSION)) / np.sqrt(quantities)[:, np.newaxis]
    return Honest(truth, truth + noise, quantities)


def nobody(honest: Honest, attackers: int) -> Iterator[Attack]:
    yield np.empty((0, DIMENSION)), np.empty(0)


def loud(honest: Honest, attackers: int) -> Iterator[Attack]:
    """The truth reversed, a billion claimed."""
    yield np.tile(-honest.truth, (attackers, 1)), np.full(attackers, 1e9)


def decoys(honest: Honest, attackers: int) -> Iterator[Attack]:
    """One far away, the others at -10 times the truth, all with 100 times the largest honest claim."""
    rows = np.tile(-10 * honest.truth, (attackers, 1))
    rows[0] = -1e9 * honest.truth
    yield rows, np.full(attackers, 100 * honest.largest)


def pulling(honest: Honest, attackers: int) -> Iterator[Attack]:
    """Against the honest mean from half to twice as far as others lie, with 10 to 1,000 times the usual claim."""
    mean = honest.quantities @ honest.updates / honest.quantities.sum()
    usual = np.median(np.linalg.norm(honest.updates - mean, axis=1))
    for far, claim in product((0.5, 1.0, 2.0), (10, 100, 1000)):
        row = -far * usual * mean / np.linalg.norm(mean)
        yield np.tile(row, (attackers, 1)), np.full(attackers, claim * np.median(honest.quantities))


def hidden(honest: Honest, attackers: int) -> Iterator[Attack]:
    """Against the truth from the honest mean, every length and claim tried."""
    centre = honest.quantities @ honest.updates / honest.quantities.sum()
    lengths = (0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0)
    for length, claim in product(lengths, (0.1, 0.3, 1.0, 3.0, 10.0, 100.0, 1e6)):
        row = centre - length * honest.truth
        yield np.tile(row, (attackers, 1)), np.full(attackers, max(1.0, claim * honest.largest))


@dataclass(frozen=True, kw_only=True)
class Case:
    """An attack by so many of so many clients; `signal` is the length of the truth in one sample's deviations."""

    name: str
    attack: Callable[[Honest, int], Iterator[Attack]]
    clients: int
    attackers: int
    signal: float = CLEAR


CASES = (
    Case(name="nobody lies", attack=nobody, clients=50, attackers=0),
    Case(name="5 of 50 send the truth reversed and claim 10⁹", attack=loud, clients=50, attackers=5),
    Case(name="15 of 50 do", attack=loud, clients=50, attackers=15),
    Case(name="1 of 50 at -10⁹ times the truth, 4 at -10 times", attack=decoys, clients=50, attackers=5),
    Case(name="5 of 50 see all and search", attack=hidden, clients=50, attackers=5),
    Case(name="10 of 50 pull backwards with large claims", attack=pulling, clients=50, attackers=10),
    Case(name="10 of 10 asked, 1 lies aloud", attack=loud, clients=10, attackers=1),
    Case(name="10 of 10 asked, 3 lie aloud", attack=loud, clients=10, attackers=3),
    Case(name="10 of 10 asked, 1 sees all and searches", attack=hidden, clients=10, attackers=1),
    Case(name="faint signal, nobody of 50 lies", attack=nobody, clients=50, attackers=0, signal=FAINT),
    Case(name="faint signal, 5 of 50 see all and search", attack=hidden, clients=50, attackers=5, signal=FAINT),
)


def worst(rule: fedra.Rule, honest: Honest, attacks: Iterator[Attack]) -> tuple[float, float, float]:
    """Return the least cosine between result and truth, the attackers' weight there, and honest data left out."""
    found = []
    for rows, claims in attacks:
        verdict = rule(np.vstack([honest.updates, rows]), np.concatenate([honest.quantities, claims]))
        result = np.zeros(DIMENSION) if verdict.update is None else verdict.update
        lengths = np.linalg.norm(result) * np.linalg.norm(honest.truth)
        cosine = float(result @ honest.truth / lengths) if lengths else 0.0
        many = len(honest.updates)
        weight = float("nan") if verdict.weights is None else float(verdict.weights[many:].sum())
        out = 1 - float(honest.quantities[verdict.kept[:many]].sum() / honest.quantities.sum())
        found.append((cosine, weight, out))
    return min(found)


def main() -> None:
    rows = [("attack", *RULES)]
    result: dict[str, dict[str, Figures]] = {}
    for case in CASES:
        result[case.name] = {}
        for label, rule in RULES.items():
            drawn = []
            for seed in range(SEEDS):
                rng = np.random.default_rng([seed, case.clients])
                honest = honest_clients(rng, case.clients - case.attackers, case.signal)
                drawn.append(worst(rule, honest, case.attack(honest, case.attackers)))
            cosine, weight, out = np.mean(drawn, axis=0).tolist()
            result[case.name][label] = {
                "cosine": cosine,
                "attackers_weight": None if np.isnan(weight) else weight,
                "honest_data_left_out": out,
            }
            print(f"{case.name}: {label}: cosine {cosine:.2f}, weight {weight:.2f}, left out {out:.1%}", flush=True)
        rows.append((case.name, *(_cell(figures) for figures in result[case.name].values())))
    note = (
        "Cosine between a round's result and the truth, and in brackets the attackers' weight; means of "
        f"{SEEDS} rounds. Synthetic: {DIMENSION} coordinates, one sample's noise is {1 / CLEAR:.1f} times the truth "
        f"({1 / FAINT:.0f} times where the signal is faint), honest quantities are log-normal around 20 (sigma 1), and "
        "all rules assume a ratio of 0.1. Those who search try 77 lengths and claims against the truth with the rule."
    )
    markdown = table(rows) + "\n\n" + note
    write("attackers", {"fedra": fedra.__version__, "attacks": result}, markdown)
    quote("attackers", markdown, PAGE)


def _cell(figures: Figures) -> str:
    weight = figures["attackers_weight"]
    return f"{figures['cosine']:.2f}" + ("" if weight is None else f" ({weight:.2f})")


if __name__ == "__main__":
    main()
