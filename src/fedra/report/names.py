"""What people call the data sets, settings, attacks and rules of a report."""

from __future__ import annotations

import re

from fedra.experiments import read_paper
from fedra.experiments.protocols import read_protocols

# A file system takes 255 bytes, and more than the stem stands in a name.
_LONGEST_STEM = 150
_OURS = {
    "cifar10": "CIFAR-10",
    "digits": "Digits",
    "fashion-mnist": "Fashion-MNIST",
    "huffpost": "HuffPost",
    "iid": "IID",
    "non-iid": "non-IID",
    "dirichlet": "Dirichlet",
    "fixed": "fixed ratio",
    "dynamic": "dynamic ratio",
    "none": "No attack",
    "uniform": "Uniform",
    "fedra, mcne": "FedRA with MCNE",
    "fedra, under-estimated": "FedRA, under-estimated",
    "fedra, over-estimated": "FedRA, over-estimated",
}


def printed(label: str) -> str:
    """Return the name in print of a data set, partition, setting, attack or rule; others keep their own."""
    return {**read_paper().names, **_OURS}.get(label, label)


def stands_for(dataset: str) -> str:
    """Return the data set of the paper in whose place this one is; most are in their own."""
    return read_protocols().stands_for.get(dataset, dataset)


def file_stem(*words: str) -> str:
    """Return words as one that is safe in file names, addresses and LaTeX labels."""
    return re.sub(r"[^a-z0-9]+", "-", "-".join(words).lower())[:_LONGEST_STEM].strip("-") or "table"
