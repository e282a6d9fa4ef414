"""The model, a perceptron with one hidden layer in NumPy, and each node's share of the data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fedra.data import Dataset, DatasetError, load_dataset
from fedra.seeding import generator

HIDDEN = 32

Arrays = dict[str, npt.NDArray[np.float32]]
Inputs = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]


def load(config: Mapping[str, Any]) -> Dataset:
    """Load the data set that the run configuration names."""
    name, folder = str(config["dataset"]), str(config["data-dir"]) or None
    if name != "auto":
        return load_dataset(name, folder)
    try:
        return load_dataset("mnist", folder)
    except DatasetError:
        return load_dataset("digits")


def flat(inputs: npt.NDArray[Any]) -> Inputs:
    return inputs.reshape(len(inputs), -1)


def share(data: Dataset, partition: int, partitions: int, seed: int) -> tuple[Inputs, Labels]:
    """Return one node's samples: an equal part of the shuffled training set."""
    order = generator(seed, "flower-mnist/share").permutation(len(data.train_labels))
    mine = order[partition::partitions]
    return flat(data.train_inputs[mine]), data.train_labels[mine]


def initial_model(data: Dataset, seed: int) -> Arrays:
    rng = generator(seed, "flower-mnist/model")
    inputs = int(np.prod(data.input_shape))
    return {
        "hidden.weight": (rng.standard_normal((inputs, HIDDEN)) / np.sqrt(inputs)).astype(np.float32),
        "hidden.bias": np.zeros(HIDDEN, np.float32),
        "output.weight": (rng.standard_normal((HIDDEN, data.num_classes)) / np.sqrt(HIDDEN)).astype(np.float32),
        "output.bias": np.zeros(data.num_classes, np.float32),
    }


def probabilities(model: Arrays, inputs: Inputs) -> tuple[Inputs, Inputs]:
    """Return the hidden layer and the probabilities of the classes."""
    hidden = np.maximum(inputs @ model["hidden.weight"] + model["hidden.bias"], 0)
    scores = hidden @ model["output.weight"] + model["output.bias"]
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    return hidden, scores / scores.sum(axis=1, keepdims=True)


def train(
    model: Arrays, inputs: Inputs, labels: Labels, *, epochs: int, rate: float, seed: int
) -> tuple[Arrays, float]:
    """Return the model after some epochs of gradient descent in batches of 32, and the last mean loss."""
    model = {name: array.copy() for name, array in model.items()}
    rng = np.random.default_rng(seed)
    losses: list[float] = []
    for _ in range(epochs):
        losses = []
        order = rng.permutation(len(labels))
        for first in range(0, len(order), 32):
            batch = order[first : first + 32]
            hidden, chances = probabilities(model, inputs[batch])
            rows = np.arange(len(batch))
            losses.append(float(-np.log(np.maximum(chances[rows, labels[batch]], 1e-12)).mean()))
            error = chances
            error[rows, labels[batch]] -= 1
            error /= len(batch)
            behind = (error @ model["output.weight"].T) * (hidden > 0)
            model["output.weight"] -= np.float32(rate) * (hidden.T @ error)
            model["output.bias"] -= np.float32(rate) * error.sum(axis=0)
            model["hidden.weight"] -= np.float32(rate) * (inputs[batch].T @ behind)
            model["hidden.bias"] -= np.float32(rate) * behind.sum(axis=0)
    return model, float(np.mean(losses))


def evaluate(model: Arrays, inputs: Inputs, labels: Labels) -> tuple[float, float]:
    """Return the mean loss and the accuracy."""
    _, chances = probabilities(model, inputs)
    loss = float(-np.log(np.maximum(chances[np.arange(len(labels)), labels], 1e-12)).mean())
    return loss, float((chances.argmax(axis=1) == labels).mean())
