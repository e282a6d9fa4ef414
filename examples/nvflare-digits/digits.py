"""scikit-learn's digits, and a softmax regression on them in NumPy: one array of 65 x 10, the last row the biases."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

_SEED = 2023
_TEST_SAMPLES = 360


def initial_model() -> np.ndarray:
    return np.zeros((65, 10), dtype=np.float32)


def load() -> tuple[np.ndarray, np.ndarray]:
    """Return inputs with a column of ones, and labels, in one fixed random order."""
    digits = load_digits()
    order = np.random.default_rng(_SEED).permutation(len(digits.target))
    inputs = np.column_stack([digits.data / 16, np.ones(len(digits.target))]).astype(np.float32)
    return inputs[order], digits.target[order]


def part_of_site(site: int, num_sites: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the samples of one site, counted from 1; a later site has more than an earlier one."""
    inputs, labels = load()
    inputs, labels = inputs[_TEST_SAMPLES:], labels[_TEST_SAMPLES:]
    shares = np.cumsum(np.arange(num_sites) + num_sites)
    ends = np.concatenate([[0], shares * len(labels) // shares[-1]])
    mine = slice(ends[site - 1], ends[site])
    return inputs[mine], labels[mine]


def train(model: np.ndarray, inputs: np.ndarray, labels: np.ndarray, *, steps: int = 20, lr: float = 0.5) -> np.ndarray:
    """Return the model after some steps of gradient descent on all samples."""
    weights = model.astype(np.float64)
    wanted = np.eye(10)[labels]
    for _ in range(steps):
        scores = inputs @ weights
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights -= lr * inputs.T @ (odds / odds.sum(axis=1, keepdims=True) - wanted) / len(labels)
    return weights.astype(np.float32)


def accuracy_of(model: np.ndarray) -> float:
    """Return the share of right answers on samples that no site has."""
    inputs, labels = load()
    return float(np.mean(np.argmax(inputs[:_TEST_SAMPLES] @ model, axis=1) == labels[:_TEST_SAMPLES]))
