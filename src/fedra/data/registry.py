"""The data sets by name, and one's own by module:function."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedra.data.cifar import load_cifar10
from fedra.data.dataset import Dataset
from fedra.data.digits import load_digits
from fedra.data.errors import DatasetError
from fedra.data.idx import load_fashion_mnist, load_mnist
from fedra.data.news import load_huffpost, load_mind
from fedra.names import import_own, nearest, parameters_of

DATA_DIR_VARIABLE = "FEDRA_DATA"


@dataclass(frozen=True, kw_only=True)
class DatasetSpec:
    """A loader and what a list of data sets says about it; the loader's keyword arguments are its options."""

    load: Callable[..., Dataset]
    summary: str


DATASETS: dict[str, DatasetSpec] = {
    "digits": DatasetSpec(load=load_digits, summary="scikit-learn's 8x8 digits, embedded, 10 classes"),
    "mnist": DatasetSpec(load=load_mnist, summary="handwritten digits, 28x28, 10 classes"),
    "fashion-mnist": DatasetSpec(load=load_fashion_mnist, summary="articles of clothing, 28x28, 10 classes"),
    "cifar10": DatasetSpec(load=load_cifar10, summary="colour photographs, 32x32x3, 10 classes"),
    "mind": DatasetSpec(load=load_mind, summary="MIND news titles, 18 categories"),
    "huffpost": DatasetSpec(load=load_huffpost, summary="HuffPost headlines, 41 categories"),
}


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
