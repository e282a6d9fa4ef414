"""scikit-learn's digits: 1,797 images of 8x8 that need no file."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np

from fedra.data.dataset import Dataset, DatasetError
from fedra.data.images import standardise
from fedra.data.spec import DatasetSpec
from fedra.seeding import generator

# Mean and standard deviation of all pixels, which run from 0 to 16, after division by 16.
_MEAN, _STD = 0.3053, 0.3760
_TEST_SHARE = 0.2


def load_digits(data_dir: Path | None) -> Dataset:
    """The embedded data set, split 80/20 within every class by a fixed permutation."""
    try:
        sklearn_datasets = importlib.import_module("sklearn.datasets")
    except ImportError as error:
        raise DatasetError("digits needs scikit-learn; install it with: pip install 'fedra[simulation]'") from error
    bunch = sklearn_datasets.load_digits()
    labels = bunch.target.astype(np.int64)
    images = standardise(bunch.images.astype(np.uint8)[:, None], mean=[_MEAN], std=[_STD], scale=16.0)
    is_test = np.zeros(len(labels), bool)
    rng = generator(0, "digits/split")
    for label in range(10):
        members = rng.permutation(np.flatnonzero(labels == label))
        is_test[members[: round(_TEST_SHARE * len(members))]] = True
    return Dataset(
        name=DIGITS.name,
        train_inputs=images[~is_test],
        train_labels=labels[~is_test],
        test_inputs=images[is_test],
        test_labels=labels[is_test],
        num_classes=10,
        class_names=tuple(str(digit) for digit in range(10)),
    )


DIGITS = DatasetSpec(
    name="digits",
    label="Digits",
    summary="scikit-learn's 8x8 digits, embedded, 10 classes",
    load=load_digits,
    note=lambda data_dir: "embedded",
    not_downloaded="it is embedded in scikit-learn",
    model="logistic",
    learning_rate=1e-2,
    # 140 clients, so that 50 can be sampled.
    partition_seed=161,
)
