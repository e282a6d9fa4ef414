"""Whether the federations of runs are possible with their data, found out before the first of them is run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from fedra.data import load_dataset
from fedra.experiments.jobs import Job
from fedra.simulation import FEDERATION_SETTINGS, SimulationConfig
from fedra.simulation.federation import checked_malicious
from fedra.simulation.holdings import make_holdings, partition_seed

# Of the settings that describe a federation, those that choose among clients and do not make them.
_OF_CLIENTS = ("setting", "num_sampled", "malicious_ratio", "num_malicious", "malicious", "assumed_ratio")


def check_feasible(jobs: Iterable[Job]) -> None:
    """Raise where a run's federation is not possible with its data; data that cannot be loaded are the run's matter.

    Each data set is loaded once and each federation cut once, one in memory at a time.
    """
    for found in _grouped(jobs, _data_of):
        _check_with_data(found)


def _check_with_data(jobs: list[Job]) -> None:
    config = jobs[0].config
    try:
        dataset = load_dataset(config.dataset, config.data_dir, **config.dataset_params)
    except Exception:  # whatever somebody's loader raises; its run fails with it
        return
    for found in _grouped(jobs, _cut_of):
        holdings = None
        for job in found:
            try:
                holdings = holdings or make_holdings(job.config, dataset)
                checked_malicious(job.config, holdings)
            except (ValueError, TypeError) as error:
                raise ValueError(f"{job.run}: {error}; nothing was run") from error


def _grouped(jobs: Iterable[Job], key: Callable[[SimulationConfig], str]) -> Iterable[list[Job]]:
    groups: dict[str, list[Job]] = {}
    for job in jobs:
        groups.setdefault(key(job.config), []).append(job)
    return groups.values()


def _data_of(config: SimulationConfig) -> str:
    values = config.to_dict()
    return json.dumps([values[key] for key in ("dataset", "data_dir", "dataset_params")], default=repr)


def _cut_of(config: SimulationConfig) -> str:
    values = config.to_dict()
    stated = {key: values[key] for key in FEDERATION_SETTINGS if key not in _OF_CLIENTS}
    return json.dumps({**stated, "partition_seed": partition_seed(config)}, default=repr)
