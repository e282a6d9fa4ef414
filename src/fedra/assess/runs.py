"""What is known of the federation of a simulated run, from its folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fedra.assess.sources import Source
from fedra.rules.mcne import malicious_total
from fedra.simulation.config import SimulationConfig
from fedra.simulation.malicious import malicious_count
from fedra.simulation.run_folder import RunFolder
from fedra.untrusted import clipped


def run_folder(path: Path, *, trust: bool = False) -> Source:
    """Read the true quantities of the clients that took part in a run, its sizes and its length."""
    folder, config = RunFolder.existing(path, trust=trust)
    clients = folder.frame("clients")
    if not len(clients):
        raise ValueError(f"{path} has no records of rounds yet; assess it when rounds have ended, or give quantities")
    seen = clients.drop_duplicates("client")["true_quantity"].to_numpy(dtype=np.float64)
    result = folder.result()
    total = config.num_clients if result is None else int(result["num_clients"])
    return Source(
        quantities=seen,
        known=f"quantities are the true ones of the {len(seen):,} clients that took part in the run "
        f"{clipped(path.name, 80)}",
        num_clients=None if total is None else max(total, len(seen)),
        num_sampled=config.num_sampled,
        num_malicious=_malicious(config, total or len(seen)),
        rounds=config.rounds,
    )


def _malicious(config: SimulationConfig, total: int) -> int:
    if config.malicious is not None:
        return malicious_count(config.malicious)
    return malicious_total(total, config.malicious_ratio) if config.num_malicious is None else config.num_malicious
