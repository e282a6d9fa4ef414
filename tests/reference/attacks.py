"""What attackers send and claim, one coordinate, one client and one sample at a time."""

from math import exp, floor, log, sqrt
from statistics import NormalDist

import numpy as np


def mean_and_deviation(values):
    """The mean and the standard deviation with ``ddof = 1``, which is 0 for one value."""
    mean = sum(float(value) for value in values) / len(values)
    if len(values) == 1:
        return mean, 0.0
    return mean, sqrt(sum((float(value) - mean) ** 2 for value in values) / (len(values) - 1))


def lie(pool, z):
    """``mu - z sigma`` in each coordinate."""
    pairs = [mean_and_deviation(column) for column in np.asarray(pool).T]
    return np.array([mean - z * deviation for mean, deviation in pairs])


def optimize(pool, lam):
    """``mu - lambda sign(mu) sigma`` in each coordinate."""
    pairs = [mean_and_deviation(column) for column in np.asarray(pool).T]
    return np.array([mean - lam * ((mean > 0) - (mean < 0)) * deviation for mean, deviation in pairs])


def decoys(pool, num_malicious, count, lam, factors):
    """``mu - f sigma`` for the first few, each with its f, ``mu - lambda sign(mu) sigma`` for the others."""
    rows = [lie(pool, factor) for factor in factors[:count]]
    return np.array([*rows, *[optimize(pool, lam)] * num_malicious][:num_malicious])


def largest_z(num_sampled, num_malicious):
    """The z with ``Phi(z) = (n - m - s) / (n - m)``, ``s = floor(n/2 + 1) - m``, not below 0, by bisection."""
    benign = num_sampled - num_malicious
    share = (benign - (floor(num_sampled / 2 + 1) - num_malicious)) / benign
    low, high = 0.0, 40.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if NormalDist().cdf(middle) < share else (low, middle)
    return low


def flipped(labels, mapping, num_classes, rng=None):
    """The labels that a label flip trains on: ``C - 1 - y``, ``y + 1`` around, or any other label."""
    if mapping == "reverse":
        return [num_classes - 1 - int(label) for label in labels]
    if mapping == "next":
        return [int(label) + 1 if int(label) + 1 < num_classes else 0 for label in labels]
    steps = rng.integers(1, num_classes, size=len(labels))
    return [(int(label) + int(step)) % num_classes for label, step in zip(labels, steps, strict=True)]


def logistic_gradient(weights, inputs, labels, num_classes):
    """The gradient of the mean cross-entropy of logistic regression, weights of all classes first, then biases."""
    flat = np.asarray(inputs, dtype=np.float64).reshape(len(inputs), -1)
    matrix = np.asarray(weights[:-num_classes], dtype=np.float64).reshape(num_classes, -1)
    bias = np.asarray(weights[-num_classes:], dtype=np.float64)
    by_weight, by_bias = np.zeros_like(matrix), np.zeros_like(bias)
    for sample, label in zip(flat, labels, strict=True):
        scores = matrix @ sample + bias
        top = float(scores.max())
        total = top + log(sum(exp(float(score) - top) for score in scores))
        for number in range(num_classes):
            error = exp(float(scores[number]) - total) - (number == int(label))
            by_weight[number] += error * sample / len(flat)
            by_bias[number] += error / len(flat)
    return np.concatenate([by_weight.ravel(), by_bias])


def claimed_quantity(true_quantities, alpha_q):
    """``max(1, int(mu_q + alpha_q sigma_q))`` over all malicious clients."""
    mean, deviation = mean_and_deviation(true_quantities)
    return max(1, int(mean + alpha_q * deviation))
