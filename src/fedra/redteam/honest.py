"""What attackers know of the honest clients of a round: mean, deviation, directions, and the room among them."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from fedra.cohort import Floats
from fedra.kernels import column_moments, pairwise_squared_l2
from fedra.redteam.judging import Vectors


class Honest:
    """Mean, deviation and distances of honest updates, computed once, and how far an attacker may go among them."""

    def __init__(self, updates: Any) -> None:
        self.rows: list[Vectors] = list(updates)
        self.mean, self.deviation = column_moments(self.rows, threads=1)

    @cached_property
    def squared_distances(self) -> Floats:
        """(h, h) between the updates."""
        return pairwise_squared_l2(self.rows)

    @cached_property
    def squared_to_mean(self) -> Floats:
        """(h,) to their mean."""
        return np.array([squared_length(row - self.mean) for row in self.rows])

    @cached_property
    def spread(self) -> float:
        """The root mean square distance to the mean; the size of the mean where all are the same."""
        spread = math.sqrt(float(self.squared_to_mean.mean()))
        return spread if spread > 0 else float(np.linalg.norm(self.mean)) or 1.0

    @cached_property
    def _components(self) -> Floats:
        """(h, h) coefficients of the principal directions in terms of the updates, the largest variance first."""
        centring = np.eye(len(self.rows)) - 1 / len(self.rows)
        _, vectors = np.linalg.eigh(-centring @ self.squared_distances @ centring / 2)
        return vectors[:, ::-1].T

    @property
    def most_deviant(self) -> int:
        """The update furthest from the mean along the top direction of variance."""
        return int(np.argmax(np.abs(self._components[0])))

    def principal(self, number: int) -> Floats:
        """Return a principal direction, not normalised; its sign is any."""
        coefficients = self._components[number]
        direction = np.zeros_like(self.mean)
        for coefficient, row in zip(coefficients, self.rows, strict=True):
            direction += coefficient * (row - self.mean)
        return direction

    def largest_within_maximum(self, towards: Floats) -> float:
        r"""Return the largest g with :math:`\max_i \|\mu + g p - x_i\| \le \max_{ij} \|x_i - x_j\|`."""
        square = squared_length(towards)
        if square == 0:
            return 0.0
        inner = np.array([float(towards @ (self.mean - row)) for row in self.rows])
        room = np.maximum(self.squared_distances.max() - self.squared_to_mean, 0)
        # The upper root of g^2 |p|^2 + 2 g p(mu - x_i) + |mu - x_i|^2 = max distance^2, for each i.
        return max(float((np.sqrt(inner**2 + square * room) - inner).min()) / square, 0.0)

    def largest_within_sum(self, towards: Floats) -> float:
        r"""Return the largest g with :math:`\sum_i \|\mu + g p - x_i\|^2 \le \max_i \sum_j \|x_i - x_j\|^2`."""
        square = len(self.rows) * squared_length(towards)
        room = float(self.squared_distances.sum(axis=1).max() - self.squared_to_mean.sum())
        # Around the mean the terms linear in g add up to nothing.
        return math.sqrt(max(room, 0) / square) if square > 0 else 0.0


def squared_length(vector: Vectors) -> float:
    """Return the squared length."""
    return float(vector @ vector)


def normalised(vector: Floats) -> Floats:
    """Return the vector with length 1; zero stays zero."""
    length = math.sqrt(squared_length(vector))
    return vector / length if length > 0 else vector.astype(np.float64)
