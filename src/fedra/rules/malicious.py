"""The assumed number of malicious clients m~ in a round, for the rules that need one."""

from __future__ import annotations

import math
import numbers
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from fedra.rules.base import Rule


def exact(ratio: float) -> Fraction:
    """Return a ratio as the decimal it was written as: 0.1 is one tenth, not the float just above it."""
    return Fraction(repr(float(ratio)))


def checked_ratio(ratio: float) -> float:
    """Return the ratio, or raise where it is not a number in [0, 0.5)."""
    if isinstance(ratio, bool) or not isinstance(ratio, numbers.Real):
        raise TypeError(f"malicious_ratio={ratio!r}; give a number from 0 up to, not including, 0.5")
    if not 0 <= ratio < 0.5:
        raise ValueError(f"malicious_ratio={ratio!r} is outside [0, 0.5): no rule can stand against half the clients")
    return float(ratio)


def checked_count(name: str, count: int, least: int) -> int:
    """Return the count, or raise where it is not a whole number of at least `least`."""
    if isinstance(count, bool) or not isinstance(count, numbers.Integral):
        raise TypeError(f"{name}={count!r}; give a whole number of at least {least}")
    if count < least:
        raise ValueError(f"{name}={count!r}; give a whole number of at least {least}")
    return int(count)


def checked_switch(name: str, value: bool) -> bool:
    """Return the switch, or raise where it is neither True nor False: any text, even "no", would count as on."""
    if not isinstance(value, bool):
        raise TypeError(f"{name}={value!r}; give True or False")
    return value


@dataclass(frozen=True, kw_only=True)
class AssumesMalicious(Rule):
    """A rule that assumes m~ malicious clients: ``m~ = ceil(n * malicious_ratio)``, or `num_malicious` as given.

    Where n clients are too few for m~ the rule refuses; with `clamp` it takes the largest m~ that n allows instead.
    """

    condition: ClassVar[str]

    malicious_ratio: float = 0.1
    num_malicious: int | None = None
    clamp: bool = False

    def __post_init__(self) -> None:
        checked_ratio(self.malicious_ratio)
        if self.num_malicious is not None:
            checked_count("num_malicious", self.num_malicious, 0)
        checked_switch("clamp", self.clamp)

    @abstractmethod
    def most_malicious(self, num_sampled: int) -> int:
        """Return the largest m~ for which `condition` holds with n clients; negative where none does."""

    def expected_malicious(self, num_sampled: int) -> int:
        """Return m~ before any clamping."""
        if self.num_malicious is not None:
            return int(self.num_malicious)
        return math.ceil(num_sampled * exact(self.malicious_ratio))

    def assumed_malicious(self, num_sampled: int) -> int:
        """Return the m~ to work with for n clients."""
        expected = self.expected_malicious(num_sampled)
        return min(expected, max(0, self.most_malicious(num_sampled))) if self.clamp else expected

    def unmet(self, num_sampled: int) -> str:
        """Say by how much `condition` fails, and what can be done."""
        assumed = self.assumed_malicious(num_sampled)
        if assumed <= self.most_malicious(num_sampled):
            return ""
        remedy = "sample more clients" if self.clamp else "sample more clients, lower m~, or pass clamp=True"
        return f"{self.name} needs {self.condition}, but has n = {num_sampled} and m~ = {assumed}; {remedy}"
