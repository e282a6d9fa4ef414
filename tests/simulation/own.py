"""Rules, attacks and a data set as users write them, named ``tests.simulation.own:...`` in configurations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from fedra import Cohort, Decision, Family, Rule, Verdict
from fedra.attacks import AttackerView
from fedra.data import Dataset
from fedra.simulation import SimulationConfig, simulate


@dataclass(frozen=True, kw_only=True)
class Oracle(Rule):
    """The mean by quantity of everybody but the clients it was told of."""

    name: ClassVar[str] = "oracle"
    family: ClassVar[Family] = Family.ROBUST

    malicious: Sequence[int] = ()

    def __call__(self, updates: Any, quantities: Any, client_ids: Any = None, *, threads: int | None = None) -> Verdict:
        told = np.isin(client_ids, list(self.malicious))
        return super().__call__(updates, np.where(told, np.nan, quantities), client_ids, threads=threads)

    def decide(self, cohort: Cohort) -> Decision:
        return Decision(weights=cohort.shares)


def not_a_number(view: AttackerView, rng: np.random.Generator) -> np.ndarray:
    return np.full(len(view.weights), np.nan, dtype=np.float32)


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
