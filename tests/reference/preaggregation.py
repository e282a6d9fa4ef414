"""Pre-aggregators straight from their definitions, in float64."""

from __future__ import annotations

import math

import numpy as np


def nnm(updates: np.ndarray, quantities: np.ndarray, malicious: int) -> tuple[np.ndarray, np.ndarray]:
    mixed, claims = [], []
    for one in updates:
        distances = [float(np.sum((one - other) ** 2)) for other in updates]
        nearest = sorted(range(len(updates)), key=lambda j: (distances[j], j))[: len(updates) - malicious]
        mixed.append(np.mean([updates[j] for j in nearest], axis=0))
        claims.append(np.mean([quantities[j] for j in nearest]))
    return np.array(mixed), np.array(claims)


def arc(updates: np.ndarray, malicious: int) -> np.ndarray:
    count = len(updates)
    clipped = math.floor(2 * malicious * (count - malicious) / count)
    lengths = sorted((float(np.linalg.norm(one)) for one in updates), reverse=True)
    bound = lengths[min(clipped, count - 1)]
    return np.array([one * min(1.0, bound / max(np.linalg.norm(one), 1e-300)) for one in updates])


def buckets(updates: np.ndarray, quantities: np.ndarray, groups: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    rows = [sum(quantities[j] * updates[j] for j in group) / sum(quantities[j] for j in group) for group in groups]
    return np.array(rows), np.array([sum(quantities[j] for j in group) for group in groups])
