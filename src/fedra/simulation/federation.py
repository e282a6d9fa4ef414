"""The federation that is simulated: who holds which data, who is malicious, who claims what, who is sampled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedra.attacks import QuantityAttack
from fedra.data import Dataset, Partition
from fedra.seeding import generator
from fedra.simulation.config import SimulationConfig
from fedra.simulation.holdings import Holdings, make_holdings, partition_seed
from fedra.simulation.malicious import malicious_clients

Ids = npt.NDArray[np.int64]

_POOL = 50


@dataclass(frozen=True, eq=False, kw_only=True)
class Federation:
    """N clients with their data, M of them malicious, and the quantity each one claims.

    With `attack_of_round` the sampled malicious clients claim by their own quantities instead.
    """

    partition: Partition
    malicious: npt.NDArray[np.bool_]
    claims: npt.NDArray[np.float64]
    setting: str
    num_sampled: int
    seed: int
    attack_of_round: QuantityAttack | None = None

    @property
    def num_clients(self) -> int:
        """N."""
        return len(self.malicious)

    def sample(self, round_number: int) -> Ids:
        """Return the clients of a round, in ascending order."""
        rng = generator(self.seed, "simulation/sample", round_number)
        if self.setting == "dynamic":
            chosen = rng.choice(self.num_clients, self.num_sampled, replace=False)
        else:
            bad, good = np.flatnonzero(self.malicious), np.flatnonzero(~self.malicious)
            count = -(-self.num_sampled * len(bad) // self.num_clients)
            chosen = np.concatenate(
                [
                    rng.choice(bad, count, replace=False),
                    rng.choice(good, self.num_sampled - count, replace=False),
                ]
            )
        return np.sort(chosen).astype(np.int64)

    def claims_of(self, clients: Ids) -> npt.NDArray[np.float64]:
        """Return what the clients of a round claim, or plan to."""
        claims = self.claims[clients]
        if self.attack_of_round is not None:
            lying = self.malicious[clients]
            true = self.partition.quantities[clients][lying]
            claims[lying] = self.attack_of_round.claims(true)
        return claims

    def pool(self, round_number: int) -> Ids:
        """Return the malicious clients whose honest gradients an attacker takes its statistics from."""
        bad = np.flatnonzero(self.malicious)
        rng = generator(self.seed, "simulation/pool", round_number)
        return np.sort(rng.choice(bad, min(_POOL, len(bad)), replace=False)).astype(np.int64)


def make_federation(config: SimulationConfig, dataset: Dataset) -> Federation:
    """Cut the training data into clients, or take who holds what, and choose the malicious ones."""
    holdings = make_holdings(config, dataset)
    clients = holdings.partition
    total = clients.num_clients
    chosen = checked_malicious(config, holdings)
    malicious = chosen if config.attacked else np.zeros(total, dtype=bool)
    claims = clients.quantities.astype(np.float64)
    attack = config.make_quantity_attack()
    claims[malicious] = attack.claims(clients.quantities[malicious])
    return Federation(
        partition=clients,
        malicious=malicious,
        claims=claims,
        setting=config.setting,
        num_sampled=config.num_sampled,
        seed=config.seed,
        attack_of_round=attack if config.quantity_statistics == "round" else None,
    )


def checked_malicious(config: SimulationConfig, holdings: Holdings) -> npt.NDArray[np.bool_]:
    """Return for each client whether it is malicious, where what the run asks for is possible with these clients."""
    total = holdings.partition.num_clients
    config.check_clients(total, f" ({config.dataset}, partition seed {partition_seed(config)})")
    chosen = malicious_clients(config, holdings)
    config.check_rule(config.make_rule(total))
    return chosen
