"""Rules, attacks and a data set as users write them, named ``tests.simulation.own:...`` in configurations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from fedra import Cohort, Decision, Family, Rule, StatefulRule, Verdict
from fedra.attacks import AttackerView
from fedra.cohort import RuleState
from fedra.data import Dataset
from fedra.kernels import weighted_sum
from fedra.simulation import SimulationConfig, simulate


@dataclass(frozen=True, kw_only=True)
class Oracle(Rule):
    """The mean by quantity of everybody but the clients that it knows to be malicious."""

    name: ClassVar[str] = "oracle"
    family: ClassVar[Family] = Family.ROBUST

    malicious: Sequence[int] = ()

    def __call__(self, updates: Any, quantities: Any, client_ids: Any = None, **given: Any) -> Verdict:
        known = np.isin(client_ids, list(self.malicious))
        return super().__call__(updates, np.where(known, np.nan, quantities), client_ids, **given)

    def decide(self, cohort: Cohort) -> Decision:
        return Decision(weights=cohort.shares)


@dataclass(frozen=True, kw_only=True)
class Seniority(StatefulRule):
    """The mean by how often each client was seen before: a state that grows with every new client."""

    name: ClassVar[str] = "seniority"
    family: ClassVar[Family] = Family.IGNORANT

    def init(self, dimension: int) -> RuleState:
        empty = np.zeros(0, dtype=np.int64)
        return {"visits": empty, "clients": empty, "last": np.zeros(dimension, dtype=np.float32), "rounds": np.array(0)}

    def decide(self, cohort: Cohort, state: RuleState) -> tuple[Decision, RuleState]:
        visits = dict(zip(state["clients"].tolist(), state["visits"].tolist(), strict=True))
        for client in cohort.client_ids:
            visits[client] = visits.get(client, 0) + 1
        weights = np.array([float(visits[client]) for client in cohort.client_ids])
        update = weighted_sum(cohort.rows, weights / weights.sum(), cohort.threads)
        # Going through it in its order, as only a state that came back in that order allows.
        update = update + np.float32(0.01) * state["last"] * np.float32(next(iter(state)) == "visits")
        after = {
            "visits": np.array(list(visits.values()), dtype=np.int64),
            "clients": np.array(list(visits), dtype=np.int64),
            "last": update,
            "rounds": np.array(state["rounds"] + 1),
        }
        return Decision(update=update), after

    def restore(self, state: RuleState, dimension: int) -> RuleState:
        clients, visits = state["clients"], state["visits"]
        if clients.dtype != np.int64 or clients.ndim != 1 or clients.shape != visits.shape:
            raise ValueError(f"{clients.shape} clients have {visits.shape} visits")
        if state["last"].shape != (dimension,):
            raise ValueError(f"last has shape {state['last'].shape}, the model {dimension} parameters")
        return state


@dataclass(frozen=True, kw_only=True)
class Unstorable(StatefulRule):
    """A rule that remembers what no checkpoint can hold."""

    name: ClassVar[str] = "unstorable"
    family: ClassVar[Family] = Family.IGNORANT

    def init(self, dimension: int) -> RuleState:
        return {"names": np.array(["somebody"])}

    def decide(self, cohort: Cohort, state: RuleState) -> tuple[Decision, RuleState]:
        return Decision(weights=cohort.shares), state


def not_a_number(view: AttackerView, rng: np.random.Generator) -> np.ndarray:
    return np.full(len(view.weights), np.nan, dtype=np.float32)


def reads_honest(view: AttackerView, rng: np.random.Generator) -> np.ndarray:
    return -view.honest_updates.mean(axis=0)  # type: ignore[attr-defined]


def reads_rule(view: AttackerView, rng: np.random.Generator) -> np.ndarray:
    return view.judge(view.own_gradients, np.ones(view.num_malicious)).update  # type: ignore[attr-defined]


reads_rule.knowledge = "all"  # type: ignore[attr-defined]


def overwhelming(view: AttackerView, rng: np.random.Generator, *, scale: float = 1e30) -> np.ndarray:
    return scale * rng.standard_normal((view.num_malicious, len(view.weights)))


def vandal(view: AttackerView, rng: np.random.Generator) -> np.ndarray:
    """Overwrite all it can lay hands on, then behave."""
    honest = view.own_gradients.copy()
    view.weights[:] = 1e6
    view.own_gradients[:] = -1e6
    view.pool_gradients[:] = -1e6

    def spoil(labels: np.ndarray) -> np.ndarray:
        labels[:] = 0
        return labels

    view.relabelled_gradients(spoil)[:] = 1e6
    return honest


def misshapen(view: AttackerView, rng: np.random.Generator) -> np.ndarray:
    return np.zeros(3, dtype=np.float32)


def blobs(data_dir: Path | None, *, samples: int = 600) -> Dataset:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, samples)
    inputs = (rng.normal(size=(samples, 4)) + 2 * np.eye(3, 4)[labels]).astype(np.float32)
    cut = samples * 5 // 6
    return Dataset(
        name="blobs",
        train_inputs=inputs[:cut],
        train_labels=labels[:cut],
        test_inputs=inputs[cut:],
        test_labels=labels[cut:],
        num_classes=3,
        class_names=("a", "b", "c"),
    )


def final_bits(config: SimulationConfig) -> str:
    """Run in whatever process this is called in."""
    return str(simulate(config).summary["weights_sha256"])
