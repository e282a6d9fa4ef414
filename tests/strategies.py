"""Random rounds for hypothesis, and what several tests share about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from fedra import RULES, Rule, make_rule

RULE_NAMES = tuple(RULES)
SEEDS = st.integers(0, 2**32 - 1)
DTYPES = st.sampled_from([np.float32, np.float64])


def steady_rule(name: str, **parameters: Any) -> Rule:
    """The rule with its defaults, but that it has an update whether clients agree or not."""
    return make_rule(name, **({"least_agreement": 0} if name == "concord" else {}), **parameters)


@dataclass(frozen=True, eq=False)
class Round:
    """The updates and quantities of a round; `description` are the arguments of make_round."""

    updates: np.ndarray
    quantities: np.ndarray
    description: str

    def __len__(self) -> int:
        return len(self.updates)

    def permuted(self, order: np.ndarray) -> Round:
        return Round(self.updates[order], self.quantities[order], f"{self.description} in order {order}")


def make_round(
    seed: int,
    clients: int,
    dimension: int,
    dtype: Any = np.float64,
    *,
    spread: float = 1.0,
    base: float = 0.0,
    liars: int = 0,
    claim: float | None = None,
    scale: float = 1.0,
) -> Round:
    """Honest updates around a common direction, `liars` clients far off, log-uniform quantities, one own `claim`."""
    rng = np.random.default_rng(seed)
    updates = base * rng.standard_normal(dimension) + spread * rng.standard_normal((clients, dimension))
    positions = rng.permutation(clients)
    updates[positions[:liars]] += 10 * (abs(base) + spread) * rng.standard_normal(dimension)
    quantities = np.floor(np.exp(rng.uniform(0, np.log(1e6), clients)))
    if claim is not None:
        quantities[positions[0]] = claim
    description = f"{seed}, {clients}, {dimension}, {np.dtype(dtype)}, {spread=}, {base=}, {liars=}, {claim=}, {scale=}"
    return Round((scale * updates).astype(dtype), quantities, description)


@st.composite
def rounds(
    draw: Any, *, least_clients: int = 3, most_clients: int = 20, most_dimension: int = 200, dtypes: Any = DTYPES
) -> Round:
    """Rounds of all shapes: tight and wide, with and without liars, modest and extreme claims."""
    clients = draw(st.integers(least_clients, most_clients))
    return make_round(
        draw(SEEDS),
        clients,
        draw(st.one_of(st.integers(1, 12), st.integers(1, most_dimension))),
        draw(dtypes),
        spread=draw(st.sampled_from([1.0, 0.1, 1e-3])),
        base=draw(st.sampled_from([0.0, 1.0])),
        liars=draw(st.integers(0, max(0, (clients - 3) // 4))),
        claim=draw(st.sampled_from([None, None, None, 1e9, 1e12, 2.0**53])),
        scale=draw(st.sampled_from([1.0, 1e-6, 1e6])),
    )
