"""The data sets by name, and one's own by module:function."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fedra.data.cifar import CIFAR10
from fedra.data.dataset import Dataset, DatasetError
from fedra.data.digits import DIGITS
from fedra.data.flights import FLIGHTS
from fedra.data.idx import FASHION_MNIST, MNIST
from fedra.data.news import HUFFPOST, MIND
from fedra.data.shakespeare import SHAKESPEARE
from fedra.data.spec import DatasetSpec
from fedra.names import import_own, nearest, parameters_of

DATA_DIR_VARIABLE = "FEDRA_DATA"

DATASETS: dict[str, DatasetSpec] = {
    spec.name: spec for spec in (DIGITS, MNIST, FASHION_MNIST, CIFAR10, MIND, HUFFPOST, FLIGHTS, SHAKESPEARE)
}


def default_model(name: str) -> str | None:
    """Return the model that is made for a data set; None: the one for its kind of inputs."""
    return DATASETS[name].model if name in DATASETS else DatasetSpec.model


def default_learning_rate(name: str) -> float:
    """Return the server's learning rate for a data set where none is given; one's own has that of any other."""
    return DATASETS[name].learning_rate if name in DATASETS else DatasetSpec.learning_rate


def default_partition_seed(name: str, seed: int) -> int:
    """Return the seed of a data set's partition where none is given: the stated one, or else that of the run."""
    stated = DATASETS[name].partition_seed if name in DATASETS else DatasetSpec.partition_seed
    return seed if stated is None else stated


def resolve_data_dir(data_dir: str | Path | None) -> Path | None:
    """The data directory given, or else the one FEDRA_DATA names, or None."""
    given = data_dir or os.environ.get(DATA_DIR_VARIABLE)
    return Path(given).expanduser() if given else None


def load_dataset(name: str, data_dir: str | Path | None = None, **options: Any) -> Dataset:
    """The data set called ``name``, or what ``function(data_dir, **options)`` returns for a ``module:function``."""
    load = _import_loader(name) if ":" in name else _named_loader(name)
    _check_options(name, load, options)
    dataset = load(resolve_data_dir(data_dir), **options)
    if not isinstance(dataset, Dataset):
        raise DatasetError(f"{name} returned {type(dataset).__name__}; it must return a fedra.data.Dataset")
    return dataset


def _named_loader(name: str) -> Callable[..., Dataset]:
    if name not in DATASETS:
        raise DatasetError(
            f"unknown data set {name!r}{nearest(name, DATASETS)}; or your own function as module:function"
        )
    return DATASETS[name].load


def _import_loader(name: str) -> Callable[..., Dataset]:
    try:
        loader: Callable[..., Dataset] = import_own(name, "dataset")
    except ValueError as error:
        raise DatasetError(str(error)) from error
    if next(iter(parameters_of(loader)), None) != "data_dir":
        raise DatasetError(
            f"dataset {name!r} is {type(loader).__name__}; give a function that returns a Dataset, its first parameter "
            "called data_dir"
        )
    return loader


def _check_options(name: str, load: Callable[..., Dataset], options: dict[str, Any]) -> None:
    parameters = list(inspect.signature(load).parameters.values())[1:]
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return
    valid = [parameter.name for parameter in parameters]
    for option in options:
        if option not in valid:
            raise DatasetError(f"{name} has no option {option!r}{nearest(option, valid)}")
