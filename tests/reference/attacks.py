"""What attackers send and claim, one coordinate, one client and one sample at a time."""

from itertools import pairwise
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


def column_statistics(rows):
    """The mean and the deviation of each coordinate."""
    pairs = [mean_and_deviation(column) for column in np.asarray(rows).T]
    return np.array([mean for mean, _ in pairs]), np.array([deviation for _, deviation in pairs])


def ipm(rows, eps):
    """``-eps mu``."""
    return -eps * column_statistics(rows)[0]


def gaussian(rows, deviation, noise):
    """``mu + s e`` for each row of standard normal noise."""
    mean, _ = column_statistics(rows)
    return np.array([[m + deviation * float(e) for m, e in zip(mean, row, strict=True)] for row in noise])


def mimicked(rows):
    """How far each client lies from the mean along the top direction of variance, by singular values."""
    x = np.asarray(rows, dtype=np.float64)
    centred = x - x.mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    return np.abs(centred @ directions[0])


def direction(rows, kind):
    """-sigma, -sign(mu) or -mu/||mu||."""
    mean, deviation = column_statistics(rows)
    if kind == "deviation":
        return -deviation
    if kind == "sign":
        return -np.array([float(m > 0) - float(m < 0) for m in mean])
    return -mean / sqrt(sum(m * m for m in mean))


def largest_allowed(rows, towards, allowed):
    """The largest g at which `allowed` holds for ``mu + g p``, by doubling and bisection."""
    mean, _ = column_statistics(rows)
    low, high = 0.0, 1e-12
    while allowed(mean + high * towards):
        low, high = high, 2 * high
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if allowed(mean + middle * towards) else (low, middle)
    return mean + low * towards


def min_max(rows, kind):
    """``max_i ||x - x_i|| <= max_ij ||x_i - x_j||``."""
    x = np.asarray(rows, dtype=np.float64)
    most = max(np.sum((a - b) ** 2) for a in x for b in x)
    return largest_allowed(rows, direction(rows, kind), lambda sent: max(np.sum((sent - a) ** 2) for a in x) <= most)


def min_sum(rows, kind):
    """``sum_i ||x - x_i||^2 <= max_i sum_j ||x_i - x_j||^2``."""
    x = np.asarray(rows, dtype=np.float64)
    most = max(sum(np.sum((a - b) ** 2) for b in x) for a in x)
    return largest_allowed(rows, direction(rows, kind), lambda sent: sum(np.sum((sent - a) ** 2) for a in x) <= most)


def consistent(models, signs, c):
    """What is sent at each of the models that were seen: None before a step, then ``c ||last step|| s / sqrt(d)``."""
    sent, step = [None], 0.0
    for before, after in pairwise(models):
        moved = sqrt(sum((float(a) - float(b)) ** 2 for a, b in zip(after, before, strict=True)))
        step = moved or step
        sent.append(None if step == 0 else np.array([c * step * float(s) / sqrt(len(signs)) for s in signs]))
    return sent


def triggered(inputs, patch, value, token):
    """Each input with a square in its lower right corner, its last features set, or a token in front."""
    found = []
    for one in np.asarray(inputs):
        if one.dtype == np.int64:
            found.append([token, *one[:-1].tolist()])
            continue
        marked = one.astype(np.float64).tolist()
        if one.ndim == 1:
            marked = [value if place >= len(marked) - patch else x for place, x in enumerate(marked)]
        else:
            height, width = one.shape[1:]
            for channel in marked:
                for row in range(max(height - patch, 0), height):
                    for column in range(max(width - patch, 0), width):
                        channel[row][column] = value
        found.append(marked)
    return np.array(found)


def largest_claim(passes, largest, factor=1.001):
    """The largest claim of a fine ladder from `largest` down that passes."""
    claim = largest
    while claim > 1 and not passes(claim):
        claim /= factor
    return max(claim, 1.0)
