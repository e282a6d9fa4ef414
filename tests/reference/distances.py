"""Distances between clients, one pair after the other."""

import numpy as np


def pairwise_l1(updates):
    """``||g_i - g_j||_1`` for every pair."""
    rows = np.asarray(updates, dtype=np.float64)
    n = len(rows)
    distances = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            distances[i, j] = np.sum(np.abs(rows[i] - rows[j]))
    return distances


def pairwise_squared_l2(updates):
    """``||g_i - g_j||_2^2`` for every pair."""
    rows = np.asarray(updates, dtype=np.float64)
    n = len(rows)
    distances = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            distances[i, j] = np.sum((rows[i] - rows[j]) ** 2)
    return distances
