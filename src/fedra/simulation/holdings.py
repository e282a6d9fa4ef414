"""Who holds which data of a federation: by a partition's name, by what the data say, or by a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedra import checks
from fedra.data import (
    DATASETS,
    NATURAL,
    PARTITIONS,
    Dataset,
    Owners,
    Partition,
    default_partition_seed,
    is_owner_file,
    partition,
    partition_by_owner,
    pinned_owner_file,
    read_owner_file,
)
from fedra.names import nearest

if TYPE_CHECKING:
    from fedra.simulation.config import SimulationConfig


@dataclass(frozen=True, kw_only=True, eq=False)
class Holdings:
    """Which samples each client has, and what clients are called where the data or a file say so."""

    partition: Partition
    names: tuple[str, ...] = ()

    def name(self, client: int) -> str:
        """What a client is called: its number where it has no name."""
        return self.names[client] if self.names else str(client)


def partition_seed(config: SimulationConfig) -> int:
    """Return the seed of the partition, as given or the data set's."""
    seed = config.partition_seed
    return default_partition_seed(config.dataset, config.seed) if seed is None else seed


def checked_holdings(config: SimulationConfig) -> str:
    """Return the partition in its one form, a file with its checksum; raise for what cannot be, before any work."""
    if is_owner_file(config.partition):
        held = pinned_owner_file(config.partition)
    elif config.partition in (*PARTITIONS, NATURAL):
        held = config.partition
    else:
        known = nearest(config.partition, (*PARTITIONS, NATURAL))
        shown = checks.display_value(config.partition)
        raise ValueError(f"partition={shown}{known}, or a .txt or .csv file with the client of each sample")
    if config.partition != NATURAL and config.client_key is not None:
        raise ValueError(
            f"client_key={config.client_key!r} goes with partition 'natural', and this is {config.partition!r}; leave "
            "one of them out"
        )
    if config.partition == NATURAL and config.dataset in DATASETS:
        _chosen_key(config, DATASETS[config.dataset].client_keys)
    if held not in PARTITIONS and config.quantities is not None:
        raise ValueError(
            f"quantities={checks.display_value(config.quantities)} with partition {config.partition!r}, where each "
            "client has what it holds; leave quantities out, cap them by max_quantity if they are too large, or choose "
            f"one of {', '.join(PARTITIONS)}"
        )
    return held


def stated_key(config: SimulationConfig) -> str | None:
    """Return the key of the natural partition where the data have several; the only one need not be stated."""
    known = DATASETS[config.dataset].client_keys if config.dataset in DATASETS else ()
    return None if config.client_key in known and len(known) == 1 else config.client_key


def make_holdings(config: SimulationConfig, dataset: Dataset) -> Holdings:
    """Cut the training data into clients, or give each what it holds."""
    seed = partition_seed(config)
    if config.partition in PARTITIONS:
        cut = partition(
            dataset.train_labels,
            kind=config.partition,
            seed=seed,
            alpha=config.dirichlet_alpha,
            max_quantity=config.max_quantity,
            num_clients=config.num_clients,
            quantities=config.quantities,
        )
        return Holdings(partition=cut)
    owners = _owners(config, dataset)
    if config.num_clients not in (None, len(owners.names)):
        raise ValueError(
            f"num_clients={config.num_clients}, but there are {len(owners.names)} clients by partition "
            f"{config.partition!r}; leave num_clients out"
        )
    held = partition_by_owner(owners.clients, max_quantity=config.max_quantity, seed=seed)
    return Holdings(partition=held, names=owners.names)


def _owners(config: SimulationConfig, dataset: Dataset) -> Owners:
    if config.partition == NATURAL:
        return dataset.owners[_chosen_key(config, tuple(dataset.owners))]
    return read_owner_file(config.partition, len(dataset.train_labels))


def _chosen_key(config: SimulationConfig, keys: tuple[str, ...]) -> str:
    """Return the key by which the data say who holds what."""
    if not keys:
        others = ", ".join(name for name, spec in DATASETS.items() if spec.client_keys)
        raise ValueError(
            f"partition 'natural', but {config.dataset} does not say who holds what (it has no key for clients); "
            f"choose one of {', '.join(PARTITIONS)}, give a file with the client of each sample, or another data set"
            f"{f' ({others})' if others else ''}"
        )
    if config.client_key is None:
        if len(keys) > 1:
            raise ValueError(
                f"partition 'natural' of {config.dataset} needs a key: give client_key, one of {', '.join(keys)}"
            )
        return keys[0]
    if config.client_key not in keys:
        raise ValueError(
            f"{config.dataset} has no client_key {checks.display_value(config.client_key)}"
            f"{nearest(config.client_key, keys)}"
        )
    return config.client_key
