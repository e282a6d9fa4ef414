"""What there is to say of a federation: who holds how much of what, who is malicious, what a lie would weigh."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fedra.data import Dataset
from fedra.rules.malicious import exact
from fedra.simulation.config import SimulationConfig
from fedra.simulation.holdings import Holdings, make_holdings
from fedra.simulation.malicious import malicious_clients

TOP_SHARES = (0.01, 0.05, 0.10)
# The paper's strongest lie.
_DEVIATIONS = 10


@dataclass(frozen=True, kw_only=True)
class Claim:
    r"""What one client might claim in a round, and the weight that it has where claims are believed.

    .. math:: \text{share} = c / (c + (n - 1)\, \bar q)

    with the mean quantity of the federation for the n - 1 others.
    """

    what: str
    quantity: int
    share: float


@dataclass(frozen=True, kw_only=True, eq=False)
class FederationDescription:
    """A federation as it will be simulated.

    Attributes:
        title: what it is called.
        dataset: the data set's name.
        partition: who holds what, in a word.
        class_names: what labels are called.
        names: what clients are called; numbers where the data do not say.
        quantities: samples of each client.
        labels: (clients, classes), samples of each label.
        malicious: whether each client is.
        num_samples: training samples that there are; some may belong to nobody.
        num_sampled: clients in a round.
        assumed_ratio: the ratio of malicious clients that the rule assumes.
        claims: what one liar could claim.
    """

    title: str
    dataset: str
    partition: str
    class_names: tuple[str, ...]
    names: tuple[str, ...]
    quantities: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int64]
    malicious: npt.NDArray[np.bool_]
    num_samples: int
    num_sampled: int
    assumed_ratio: float
    claims: tuple[Claim, ...]

    @property
    def num_clients(self) -> int:
        """N."""
        return len(self.quantities)

    @property
    def malicious_share(self) -> float:
        """The part of all samples that malicious clients hold."""
        return float(self.quantities[self.malicious].sum() / self.quantities.sum())

    @property
    def num_labels(self) -> npt.NDArray[np.int64]:
        """How many labels each client holds."""
        return np.asarray((self.labels > 0).sum(axis=1), dtype=np.int64)

    def top_share(self, part: float) -> tuple[int, float]:
        """Return how many clients the largest `part` of all are, at least one, and their part of the samples."""
        count = max(1, int(exact(part) * self.num_clients))
        return count, float(np.sort(self.quantities)[::-1][:count].sum() / self.quantities.sum())

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        clients = zip(self.names, self.quantities, self.malicious, self.labels, strict=True)
        return {
            "title": self.title,
            "dataset": self.dataset,
            "partition": self.partition,
            "num_clients": self.num_clients,
            "num_sampled": self.num_sampled,
            "samples": int(self.quantities.sum()),
            "samples_of_nobody": self.num_samples - int(self.quantities.sum()),
            "quantity": {
                "min": int(self.quantities.min()),
                "median": float(np.median(self.quantities)),
                "mean": float(self.quantities.mean()),
                "std": float(self.quantities.std(ddof=1)) if self.num_clients > 1 else 0.0,
                "max": int(self.quantities.max()),
            },
            "top_shares": {f"{part:g}": self.top_share(part)[1] for part in TOP_SHARES},
            "num_malicious": int(self.malicious.sum()),
            "malicious_share": self.malicious_share,
            "assumed_ratio": self.assumed_ratio,
            "claims": [{"what": c.what, "quantity": c.quantity, "share_of_round": c.share} for c in self.claims],
            "class_names": list(self.class_names),
            "clients": [
                {
                    "client": number,
                    "name": name,
                    "samples": int(held),
                    "malicious": bool(bad),
                    "labels": labels.tolist(),
                }
                for number, (name, held, bad, labels) in enumerate(clients)
            ],
        }


def describe(config: SimulationConfig, dataset: Dataset, *, title: str = "") -> FederationDescription:
    """Return the description of a run's federation; what cannot be is an error.

    Args:
        config: the run, whose rule and attack have no part in it.
        dataset: its data.
        title: what to call it; empty: the data set's name.
    """
    holdings = make_holdings(config, dataset)
    config.check_clients(holdings.partition.num_clients)
    quantities = holdings.partition.quantities
    return FederationDescription(
        title=title or config.dataset,
        dataset=config.dataset,
        partition=config.partition_name if config.client_key is None else f"{config.partition} by {config.client_key}",
        class_names=dataset.class_names,
        names=tuple(holdings.name(client) for client in range(len(quantities))),
        quantities=quantities,
        labels=_labels(holdings, dataset),
        malicious=malicious_clients(config, holdings),
        num_samples=len(dataset.train_labels),
        num_sampled=config.num_sampled,
        assumed_ratio=config.told_ratio,
        claims=possible_claims(quantities, config.num_sampled),
    )


def possible_claims(quantities: npt.NDArray[np.int64], num_sampled: int) -> tuple[Claim, ...]:
    """Return what one client might claim: the truth of a middling one, what others hold, and what wins a round."""
    others = (num_sampled - 1) * float(quantities.mean())
    spread = float(quantities.std(ddof=1)) if len(quantities) > 1 else 0.0
    stated = (
        ("the truth, as the median client", int(np.median(quantities))),
        ("as much as the largest client", int(quantities.max())),
        (f"mean + {_DEVIATIONS} standard deviations", int(quantities.mean() + _DEVIATIONS * spread)),
        ("half of all weight in a round", max(1, int(np.ceil(others)))),
    )
    return tuple(
        Claim(what=what, quantity=max(1, claim), share=max(1, claim) / (max(1, claim) + others))
        for what, claim in stated
    )


def _labels(holdings: Holdings, dataset: Dataset) -> npt.NDArray[np.int64]:
    held = holdings.partition
    owners = np.repeat(np.arange(held.num_clients), held.quantities)
    places = owners * dataset.num_classes + dataset.train_labels[held.order]
    counts = np.bincount(places, minlength=held.num_clients * dataset.num_classes)
    return counts.reshape(held.num_clients, dataset.num_classes).astype(np.int64)
