"""What a malicious node does: an attack of fedra's on the update, and a lie about its number of examples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedra.attacks import AttackerView, make_attack
from flower_mnist.task import Arrays, Labels

# How many parts a lone attacker cuts its data into, to see how far honest updates spread.
_SHARDS = 5


@dataclass(frozen=True, kw_only=True)
class Malice:
    """The attack's name, and how many examples to claim."""

    attack: str
    claimed_examples: float

    @classmethod
    def of(cls, node: Mapping[str, Any], run: Mapping[str, Any]) -> Malice | None:
        """Return what this node does to its reply, by its own configuration or the run's, or None: it is honest."""
        partitions = [int(part) for part in str(run["malicious-partitions"]).split(",") if part.strip()]
        if not node.get("malicious", False) and int(node["partition-id"]) not in partitions:
            return None
        return cls(
            attack=str(node.get("attack", run["attack"])),
            claimed_examples=float(node.get("claimed-examples", run["claimed-examples"])),
        )

    def poison(
        self,
        sent: Arrays,
        labels: Labels,
        num_classes: int,
        rng: np.random.Generator,
        fit: Callable[[np.ndarray, Labels], Arrays],
    ) -> Arrays:
        """Return arrays that carry the attack; `fit` trains on some of the node's samples with given labels."""
        everything = np.arange(len(labels))

        def update(samples: np.ndarray, chosen: Labels) -> np.ndarray:
            trained = fit(samples, chosen[samples])
            return np.concatenate([(sent[name] - trained[name]).ravel() for name in sent])

        view = AttackerView(
            round=0,
            weights=np.concatenate([array.ravel() for array in sent.values()]),
            num_sampled=1,
            num_malicious=1,
            num_classes=num_classes,
            own=lambda: update(everything, labels)[np.newaxis],
            pool=lambda: np.stack([update(part, labels) for part in np.array_split(everything, _SHARDS)]),
            relabelled=lambda relabel: update(everything, relabel(labels))[np.newaxis],
        )
        attacked = np.atleast_2d(make_attack(self.attack)(view, rng))[0]
        poisoned: Arrays = {}
        start = 0
        for name, array in sent.items():
            part = attacked[start : start + array.size].reshape(array.shape)
            poisoned[name] = (array - part).astype(np.float32)
            start += array.size
        return poisoned
