"""The honest rounds that rules are asked on: made up, or of real updates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from fedra import checks
from fedra.assess.federation import FEWEST, Federation
from fedra.cohort import Floats, shares
from fedra.seeding import generator

# A rule's time grows with the square of a round. Larger ones are looked at in rounds of this size, in proportion.
LARGEST_ROUND = 100
USUAL_DIMENSION = 100
MOST_DIMENSION = 100_000
# Of the deviation of one sample's gradient: docs/choosing.md, what no rule can do.
USUAL_SIGNAL = 0.1

Rows = npt.NDArray[Any]


@dataclass(frozen=True, eq=False, kw_only=True)
class HonestRound:
    """A round in which nobody lies: (n, d) updates, (n,) quantities, and the true mean where that is known."""

    updates: Rows = field(repr=False)
    quantities: Floats = field(repr=False)
    truth: Floats | None = field(repr=False)

    def __len__(self) -> int:
        return len(self.quantities)

    @property
    def mean(self) -> Floats:
        """The mean by quantity: FedAvg's step."""
        return np.asarray(shares(self.quantities) @ self.updates.astype(np.float64))

    def first(self, count: int) -> HonestRound:
        """Return the round of its first clients."""
        return HonestRound(updates=self.updates[:count], quantities=self.quantities[:count], truth=self.truth)

    def sampling_error(self) -> float:
        r"""Return how far its mean is from the truth; from files, by leaving out each client in turn (the jackknife).

        .. math:: e^2 = \frac{n-1}{n} \sum_i \Big\|\frac{w_i (\bar g - g^i)}{1 - w_i}\Big\|^2, \quad
                  w_i = q^i / \textstyle\sum_j q^j
        """
        if self.truth is not None:
            return float(np.linalg.norm(self.mean - self.truth))
        weights = shares(self.quantities)
        # A client with all of the weight has nobody to be compared with, and adds what it differs by.
        factors = weights / np.maximum(1 - weights, 1e-9)
        away = np.linalg.norm(self.updates - self.mean, axis=1)
        return float(np.sqrt((len(self) - 1) / len(self) * np.sum((factors * away) ** 2)))


class HonestRounds(ABC):
    """Rounds by number; the same number gives the same round."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Clients in a round."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Values of an update."""

    @property
    @abstractmethod
    def different(self) -> int | None:
        """How many different rounds there are; None: as many as one likes."""

    @abstractmethod
    def round(self, number: int) -> HonestRound:
        """Return a round; its clients are in an order of chance."""

    @property
    @abstractmethod
    def assumption(self) -> str:
        """What they are, as a sentence for readers."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SyntheticRounds(HonestRounds):
    r"""Made-up clients, :math:`g^i = \mu + \tau u^i + (s/\sqrt{q^i})\, z^i`, in units of s = 1.

    u and z have d independent normal coordinates of variance 1/d, so that one sample's update lies s from its client's
    mean, and a client's mean :math:`\tau` from :math:`\mu`.

    Attributes:
        federation: whose clients are drawn.
        seed: of what is drawn.
        signal: the length of :math:`\mu`.
        difference: :math:`\tau`, how far clients differ in kind; 0: their data are of one kind.
        dimension: d.
    """

    federation: Federation
    seed: int = 0
    signal: float = USUAL_SIGNAL
    difference: float = 0.0
    dimension: int = USUAL_DIMENSION

    def __post_init__(self) -> None:
        checks.whole("seed", self.seed)
        checks.number("signal", self.signal, above=0, most=1e6)
        checks.number("difference", self.difference, least=0, most=1e6)
        checks.whole("dimension", self.dimension, 2, MOST_DIMENSION)

    @property
    def size(self) -> int:
        """Clients in a round, at most 100."""
        return min(self.federation.num_sampled, LARGEST_ROUND)

    @property
    def different(self) -> int | None:
        """As many as one likes."""
        return None

    def round(self, number: int) -> HonestRound:
        """Draw clients and their noise."""
        rng = generator(self.seed, "assess/round", number)
        drawn = rng.choice(self.federation.num_clients, self.size, replace=False)
        quantities = self.federation.quantities[drawn]
        signs = generator(self.seed, "assess/mean").choice([-1.0, 1.0], self.dimension)
        truth = self.signal * signs / np.sqrt(self.dimension)
        noise, kinds = rng.standard_normal((2, self.size, self.dimension)) / np.sqrt(self.dimension)
        updates = truth + self.difference * kinds + noise / np.sqrt(quantities)[:, np.newaxis]
        return HonestRound(updates=updates.astype(np.float32), quantities=quantities, truth=truth)

    @property
    def assumption(self) -> str:
        """What is made up."""
        kinds = (
            f"each client's data differ from the others' by {self.difference:g} s"
            if self.difference
            else "all clients hold data of one kind (difference 0), and where they differ rules do worse than here"
        )
        return (
            f"Updates are synthetic: the honest mean and noise of s/sqrt(q) for a client with q samples, in "
            f"{self.dimension} dimensions; the mean is {self.signal:g} s long, s being the deviation of one sample; "
            f"{kinds}."
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class RealRounds(HonestRounds):
    """One round of real updates, which are taken to be honest."""

    updates: Rows = field(repr=False)
    quantities: Floats = field(repr=False)
    note: str = ""
    seed: int = 0

    def __post_init__(self) -> None:
        if len(self.updates) != len(self.quantities):
            raise ValueError(f"{len(self.updates)} updates, but {len(self.quantities)} quantities; give one for each")
        if len(self.updates) < FEWEST:
            raise ValueError(f"{len(self.updates)} usable updates; give those of at least {FEWEST} clients")

    @property
    def size(self) -> int:
        """As many as there are, at most 100."""
        return min(len(self.updates), LARGEST_ROUND)

    @property
    def dimension(self) -> int:
        """Values of an update that are looked at."""
        return int(self.updates.shape[1])

    @property
    def different(self) -> int | None:
        """There is one round."""
        return 1

    def round(self, number: int) -> HonestRound:
        """Return the clients in an order of chance, another one for each number."""
        order = generator(self.seed, "assess/round", number).permutation(len(self.updates))[: self.size]
        return HonestRound(updates=self.updates[order], quantities=self.quantities[order], truth=None)

    @property
    def assumption(self) -> str:
        """What they are."""
        return (
            f"Updates are those of {len(self.updates)} files, all of which are taken to be honest. {self.note}".strip()
        )
